package fleetyaml

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

const (
	tagNull  = "!!null"
	tagBool  = "!!bool"
	tagInt   = "!!int"
	tagFloat = "!!float"
	tagStr   = "!!str"
	tagMerge = "!!merge"
)

// tagOf returns the type of a scalar as Helm and Kubernetes read it: yes, no,
// on, off, y and n are booleans where they are not quoted.
func tagOf(n *yaml.Node) string {
	tag := n.ShortTag()
	if tag == tagStr && n.Style == 0 && n.Tag != "!" {
		if _, ok := oldBool(n.Value); ok {
			return tagBool
		}
	}
	return tag
}

// oldBool knows the booleans of YAML 1.1.
func oldBool(text string) (value, ok bool) {
	switch text {
	case "y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE":
		return true, true
	case "n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE":
		return false, true
	}
	return false, false
}

// plainScalar returns a scalar for which no type is wanted.
func (d *decoder) plainScalar(n *yaml.Node, at string) any {
	switch tagOf(n) {
	case tagNull:
		return nil
	case tagBool:
		value, _ := oldBool(n.Value)
		return value
	case tagInt:
		return d.plainInt(n)
	case tagFloat:
		return d.plainFloat(n, at)
	}
	return n.Value
}

// plainKey returns a key of values as Helm has it: there keys have types too,
// and become text again.
func (d *decoder) plainKey(n *yaml.Node, at string) string {
	name, err := KeyText(d.plainScalar(n, at))
	if err != nil {
		return n.Value
	}
	return name
}

// KeyText writes a key of a map as JSON writes it, and as sigs.k8s.io/yaml (and
// so kubectl and Helm) turns it into a text.
func KeyText(key any) (string, error) {
	switch k := key.(type) {
	case string:
		return k, nil
	case bool:
		return strconv.FormatBool(k), nil
	case int, int64, uint64:
		return fmt.Sprint(k), nil
	case float64:
		return strconv.FormatFloat(k, 'g', -1, 64), nil
	default:
		return "", fmt.Errorf("a key of a map is %v: only texts, numbers and booleans can be keys (a template in braces needs quotes)", key)
	}
}

func (d *decoder) plainInt(n *yaml.Node) any {
	var signed int64
	if n.Decode(&signed) == nil {
		return signed
	}
	var unsigned uint64
	if n.Decode(&unsigned) == nil {
		return unsigned
	}
	return n.Value
}

func (d *decoder) plainFloat(n *yaml.Node, at string) any {
	var number float64
	if err := n.Decode(&number); err != nil {
		return n.Value
	}
	if math.IsInf(number, 0) || math.IsNaN(number) {
		d.fail(n, at, "%s is %s, which has no form in JSON; write a number or quote it", quoted(at), n.Value)
		return nil
	}
	return number
}

// scalar returns a scalar for a string, boolean or number.
func (d *decoder) scalar(n *yaml.Node, t reflect.Type, at string) any {
	switch {
	case n.Kind != yaml.ScalarNode:
		return d.mismatch(n, t, at)
	case tagOf(n) == tagNull:
		return nil
	case t.Kind() == reflect.String:
		// The text as it was written, so that 1.10 stays 1.10.
		d.warnOfBool(n, at)
		return n.Value
	case t.Kind() == reflect.Bool && tagOf(n) == tagBool:
		value, _ := oldBool(n.Value)
		return value
	case isNumber(t) && (tagOf(n) == tagInt || tagOf(n) == tagFloat):
		return d.number(n, t, at)
	}
	return d.mismatch(n, t, at)
}

// warnOfBool speaks of a text that YAML takes for a boolean and Rancher Fleet
// for another text: where it selects by a label, other clusters are meant.
func (d *decoder) warnOfBool(n *yaml.Node, at string) {
	value, ok := oldBool(n.Value)
	if !ok || tagOf(n) != tagBool || n.Value == strconv.FormatBool(value) {
		return
	}
	d.warn(n, at, "%s is the text %q here, and %q for Rancher Fleet, since it is not quoted; quote what is meant", quoted(at), n.Value, strconv.FormatBool(value))
}

func (d *decoder) number(n *yaml.Node, t reflect.Type, at string) any {
	value := reflect.New(t)
	if err := n.Decode(value.Interface()); err != nil {
		return d.mismatch(n, t, at)
	}
	return value.Elem().Interface()
}

func isNumber(t reflect.Type) bool {
	return t.Kind() >= reflect.Int && t.Kind() <= reflect.Float64
}

// mismatch reports that n is not what t wants.
func (d *decoder) mismatch(n *yaml.Node, t reflect.Type, at string) any {
	message := fmt.Sprintf("%s must be %s, not %s", quoted(at), wanted(t), found(n))
	if t.Kind() == reflect.Slice && n.Kind == yaml.ScalarNode {
		message += fmt.Sprintf("; write [%s]", n.Value)
	}
	d.errorAt(at, "%s", message)
	return nil
}

func wanted(t reflect.Type) string {
	switch {
	case t == intOrString:
		return "a whole number or a percentage"
	case t.Kind() == reflect.String:
		return "a string"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Float64 || t.Kind() == reflect.Float32:
		return "a number"
	case isNumber(t):
		return "a whole number"
	case t.Kind() == reflect.Slice:
		return "a list"
	}
	return "an object"
}

func found(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "an object"
	case yaml.SequenceNode:
		return "a list"
	}
	switch tagOf(n) {
	case tagBool:
		return "the boolean " + n.Value
	case tagInt, tagFloat:
		return "the number " + n.Value
	}
	return fmt.Sprintf("the string %q", short(n.Value))
}

// short keeps messages to one readable line.
func short(text string) string {
	const longest = 40
	text, _, more := strings.Cut(text, "\n")
	if len(text) > longest {
		text, more = strings.ToValidUTF8(text[:longest], ""), true
	}
	if more {
		text += "…"
	}
	return text
}

func quoted(at string) string {
	if at == "" {
		return "the file"
	}
	return fmt.Sprintf("%q", at)
}
