package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

func sortedFields(s *schema) []string { return slices.Sorted(maps.Keys(s.Properties)) }

// innermost returns what the entries of lists and maps are, and how a path
// says so.
func innermost(s *schema) (inner *schema, suffix string) {
	switch {
	case s.Items != nil && s.Items.Schema != nil:
		inner, suffix = innermost(s.Items.Schema)
		return inner, "[]" + suffix
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		inner, suffix = innermost(s.AdditionalProperties.Schema)
		return inner, ".*" + suffix
	}
	return s, ""
}

// typeName names the type for a reader; reference stands for a structure that
// is described elsewhere.
func typeName(s *schema, reference string) string {
	switch {
	case s.Items != nil && s.Items.Schema != nil:
		return "list of " + typeName(s.Items.Schema, reference)
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		return "map of " + typeName(s.AdditionalProperties.Schema, reference)
	case reference != "":
		return reference
	case s.XIntOrString:
		return "integer or string"
	case len(s.Enum) > 0:
		return enum(s)
	case isDuration(s):
		return "duration"
	case s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields:
		return "free object"
	case s.Format == "date-time":
		return "time"
	case s.Format == "byte":
		return "base64"
	}
	return s.Type
}

func enum(s *schema) string {
	values := make([]string, len(s.Enum))
	for i, value := range s.Enum {
		values[i] = "`" + strings.Trim(string(value.Raw), `"`) + "`"
	}
	return strings.Join(values, ", ")
}

// isDuration recognises the rule that all durations share.
func isDuration(s *schema) bool {
	return slices.ContainsFunc(ruleTexts(s), func(rule string) bool { return strings.Contains(rule, "duration(self)") })
}

func ruleTexts(s *schema) []string {
	rules := make([]string, len(s.XValidations))
	for i, rule := range s.XValidations {
		rules[i] = rule.Rule
	}
	return rules
}

func defaultOf(s *schema, required bool) string {
	switch {
	case s.Default != nil:
		return "`" + strings.Trim(string(s.Default.Raw), `"`) + "`"
	case required:
		return "required"
	}
	return ""
}

// description says what the field is and what it must be.
func description(s *schema) string {
	text := oneLine(s.Description)
	if rest, ok := strings.CutPrefix(text, "Flotilla: "); ok {
		text = "**Flotilla.** " + rest
	}
	if s.MaxLength != nil && !isDuration(s) {
		text += fmt.Sprintf(" At most %d characters.", *s.MaxLength)
	}
	inner, _ := innermost(s)
	for _, rule := range inner.XValidations {
		text += " " + strings.ToUpper(rule.Message[:1]) + rule.Message[1:] + "."
	}
	return cell(text)
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func firstSentence(text string) string {
	sentence, _, _ := strings.Cut(oneLine(text), ". ")
	return cell(strings.TrimSuffix(sentence, "."))
}

// cell makes text safe for a cell of a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(text)
}
