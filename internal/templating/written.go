package templating

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	yamlv3 "gopkg.in/yaml.v3"
	"sigs.k8s.io/yaml"
)

// Values are filled in as if they were one text of YAML: what a template gives
// is read as YAML where its text needs no quotes there, so that a label with the
// text "false" becomes a boolean. A text that needs quotes stays text.

// valueText compiles a text of Helm values.
func (c *Compiler) valueText(text, path string) (Eval, error) {
	filled, err := c.Text(text, path)
	if err != nil || !c.fills(text) || !writtenPlain(text) {
		return filled, err
	}
	return c.reading(filled, path, text, func(result string) (any, error) {
		if value, ok := plainValueOf(result); ok {
			return value, nil
		}
		read := map[string]any{}
		if err := c.read("k: "+result, &read); err != nil {
			return nil, err
		}
		if value, ok := read["k"]; ok && len(read) == 1 {
			return value, nil
		}
		return nil, errNoValue
	}), nil
}

// keyText compiles a key of Helm values, which becomes text however it is read.
func (c *Compiler) keyText(key, path string) (Eval, error) {
	filled, err := c.Text(key, path)
	if err != nil || c.objects || !c.fills(key) || !writtenPlain(key) {
		return filled, err
	}
	return c.reading(filled, path, key, func(result string) (any, error) {
		if surelyText(result) {
			return result, nil
		}
		read := map[string]any{}
		if err := c.read(result+": 0", &read); err != nil || len(read) != 1 {
			return nil, cmp.Or(err, errNoValue)
		}
		return slices.Collect(maps.Keys(read))[0], nil
	}), nil
}

// errNoValue shows nothing of the text: it may be a password.
var errNoValue = errors.New("what the template gives is not one value in YAML; to keep it as text write \"${ … | quote }\", or \"${ … | toJson }\" where it has several lines")

// reading reads what a template gives.
func (c *Compiler) reading(filled Eval, path, text string, read func(string) (any, error)) Eval {
	return func(s *Scope) (any, error) {
		result, err := filled(s)
		if err != nil {
			return result, err
		}
		value, err := read(fmt.Sprint(result))
		if _, ok := errors.AsType[notYAML](err); ok {
			err = errNoValue
		}
		if err != nil {
			return nil, Wrong(path, text, err)
		}
		return value, nil
	}
}

// YAML compiles one template that gives a whole value as YAML.
func (c *Compiler) YAML(text, path string) (Eval, error) {
	filled, err := c.Text(text, path)
	return func(s *Scope) (any, error) {
		result, err := filled(s)
		if err != nil {
			return nil, err
		}
		var value any
		if err := c.read(fmt.Sprint(result), &value); err != nil {
			return nil, Wrong(path, text, fmt.Errorf("what the template gives is not valid YAML: %w", err))
		}
		return value, nil
	}, err
}

// read reads YAML, and pays for what becomes of it.
func (c *Compiler) read(text string, into any) error {
	if err := checkAliases(text); err != nil {
		return err
	}
	if err := c.budget.spend(len(text)); err != nil {
		return err
	}
	if err := yaml.Unmarshal([]byte(text), into); err != nil {
		return notYAML{err}
	}
	size, err := weigh(reflect.ValueOf(into))
	return cmp.Or(err, c.budget.spend(size), c.budget.total.add(size, 0))
}

// notYAML is the word of the parser, which may show what it read.
type notYAML struct{ error }

// writtenPlain tells whether YAML writes a text without quotes.
func writtenPlain(text string) bool {
	written, err := yaml.Marshal(map[string]string{"k": text})
	value, found := strings.CutPrefix(string(written), "k: ")
	return err == nil && found && !strings.ContainsAny(value[:1], "'\"|>!")
}

// plainValueOf reads most of what stands in labels without a parser: a thousand
// clusters are not to wait for one.
func plainValueOf(text string) (value any, ok bool) {
	switch text {
	case "":
		return nil, true
	case "true":
		return true, true
	case "false":
		return false, true
	}
	if isSmallNumber(text) {
		number, err := strconv.ParseFloat(text, 64)
		return number, err == nil
	}
	return text, surelyText(text)
}

// isSmallNumber tells whether a text is a whole number that is written as such
// in every version of YAML, and that JSON holds exactly.
func isSmallNumber(text string) bool {
	const exact = 15
	return text != "" && len(text) <= exact && strings.Trim(text, "0123456789") == "" && (text[0] != '0' || text == "0")
}

// surelyText tells, for most of what is text without quotes in YAML, that it
// is.
func surelyText(text string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	switch {
	case text == "" || strings.Trim(text[:1], letters) != "" || strings.Trim(text, letters+"0123456789._/-: ") != "":
		return false
	case strings.HasSuffix(text, " ") || strings.Contains(text+" ", ": "):
		return false
	}
	switch strings.ToLower(text) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		return false
	}
	return true
}

// checkAliases refuses aliases that stand for far more than is written.
func checkAliases(text string) error {
	if !strings.Contains(text, "*") || !strings.Contains(text, "&") {
		return nil
	}
	var document yamlv3.Node
	if err := yamlv3.Unmarshal([]byte(text), &document); err != nil {
		return notYAML{err}
	}
	return (&scale{}).addNode(&document)
}

func (s *scale) addNode(n *yamlv3.Node) error {
	s.size += itemSize + len(n.Value)
	if err := s.check(); err != nil {
		return err
	}
	if n.Alias != nil {
		return s.addNode(n.Alias)
	}
	for _, child := range n.Content {
		if err := s.addNode(child); err != nil {
			return err
		}
	}
	return nil
}
