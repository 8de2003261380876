package cli

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// output is the format that a command writes: text, json or yaml.
type output string

const (
	textOutput output = "text"
	jsonOutput output = "json"
	yamlOutput output = "yaml"
)

// addOutput gives a command the flag -o.
func addOutput(cmd *cobra.Command, o *output) {
	*o = textOutput
	cmd.Flags().VarP(o, "output", "o", "how to write the result: text, json or yaml")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(
		[]cobra.Completion{"text\tfor people", "json\tfor programs", "yaml\tfor both"}, cobra.ShellCompDirectiveNoFileComp))
}

// String returns the format's name.
func (o *output) String() string { return string(*o) }

// Type names the kind of value in the help.
func (o *output) Type() string { return "format" }

// Set takes the format's name.
func (o *output) Set(name string) error {
	switch output(name) {
	case textOutput, jsonOutput, yamlOutput:
		*o = output(name)
		return nil
	}
	return usagef("use text, json or yaml")
}

// write writes value in the format, by text for the people's one.
func (o output) write(w io.Writer, value any, text func(io.Writer) error) error {
	switch o {
	case jsonOutput:
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(value)
	case yamlOutput:
		data, err := yaml.Marshal(value)
		if err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	default:
		return text(w)
	}
}

// Colours of states in a terminal.
const (
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	plain  = "\x1b[0m"
)

// paint colours text where the terminal wants it.
func (g *globals) paint(colour, text string) string {
	if !g.Colour {
		return text
	}
	return colour + text + plain
}
