package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const head = `# Command line

<!-- Written by make generate from the commands; change their help instead. -->

Exit codes: 0 means that the command did what it should, 1 that it could not,
2 that it was called in a wrong way, and 130 that a signal has ended it. flotilla lint also
ends with 2 where the directory or the clusters could not be looked at.
`

// page is the whole reference.
func page(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString(head)
	writeFlags(&b, "Flags of every command", root.PersistentFlags())
	for _, cmd := range commands(root) {
		writeCommand(&b, cmd)
	}
	return b.String()
}

// commands lists what a user can call, each before those below it.
func commands(cmd *cobra.Command) []*cobra.Command {
	var all []*cobra.Command
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() && c.Name() != "help" {
			all = append(append(all, c), commands(c)...)
		}
	}
	return all
}

func writeCommand(b *strings.Builder, cmd *cobra.Command) {
	long := cmd.Long
	if long == "" {
		long = cmd.Short + "."
	}
	fmt.Fprintf(b, "\n## %s\n\n%s\n", cmd.CommandPath(), strings.TrimSpace(long))
	if cmd.Runnable() && !cmd.HasAvailableSubCommands() {
		fmt.Fprintf(b, "\n```\n%s\n```\n", cmd.UseLine())
	}
	if cmd.Example != "" {
		fmt.Fprintf(b, "\nExamples:\n\n```\n%s\n```\n", unindent(cmd.Example))
	}
	writeFlags(b, "Flags", cmd.NonInheritedFlags())
}

func writeFlags(b *strings.Builder, title string, flags *pflag.FlagSet) {
	var rows []string
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" {
			rows = append(rows, row(f))
		}
	})
	if len(rows) > 0 {
		fmt.Fprintf(b, "\n%s:\n\n| Flag | Default | |\n|---|---|---|\n%s", title, strings.Join(rows, ""))
	}
}

// row describes a flag in a row of a table.
func row(f *pflag.Flag) string {
	kind, usage := pflag.UnquoteUsage(f)
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	if kind != "" {
		name += " " + kind
	}
	value := ""
	switch f.DefValue {
	case "", "false", "[]", "0":
	default:
		value = "`" + f.DefValue + "`"
	}
	return fmt.Sprintf("| `%s` | %s | %s |\n", name, value, strings.ReplaceAll(usage, "|", `\|`))
}

func unindent(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "  ")
	}
	return strings.Join(lines, "\n")
}
