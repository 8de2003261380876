package templating

import (
	"bytes"
	"encoding/json"
	"fmt"
	"text/template/parse"
)

// Annotation keeps an object as it is, where it is "false", in a bundle whose
// objects are filled in.
const Annotation = "flotilla.sh/template"

// takeFunction is put at the end of a template that stands alone, to get what
// it gives before it becomes text.
const takeFunction = "takeValue"

// takeAlone makes a template that is a single action, with nothing before or
// behind, leave what it gives in c.taken.
func (c *Compiler) takeAlone(root *parse.ListNode) bool {
	if len(root.Nodes) != 1 {
		return false
	}
	action, ok := root.Nodes[0].(*parse.ActionNode)
	if !ok || len(action.Pipe.Decl) > 0 {
		return false
	}
	action.Pipe.Cmds = append(action.Pipe.Cmds, c.take.Copy().(*parse.CommandNode))
	return true
}

// plainValue returns a value as JSON has it, apart from what it came from.
func plainValue(value any) (any, error) {
	switch value.(type) {
	case string, bool, int64:
		return value, nil
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	if len(text) > maxText {
		return nil, fmt.Errorf("longer than %d bytes", maxText)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var plain any
	err = decoder.Decode(&plain)
	return plain, err
}
