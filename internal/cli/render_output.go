package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// objectFormat is the format that objects are written in: yaml or json.
type objectFormat string

const (
	yamlObjects objectFormat = "yaml"
	jsonObjects objectFormat = "json"
)

func (f *objectFormat) add(cmd *cobra.Command) {
	*f = yamlObjects
	cmd.Flags().VarP(f, "output", "o", "how to write the objects: yaml, or json for one List of them")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(
		[]cobra.Completion{"yaml", "json"}, cobra.ShellCompDirectiveNoFileComp))
}

// String returns the format's name.
func (f *objectFormat) String() string { return string(*f) }

// Type names the kind of value in the help.
func (f *objectFormat) Type() string { return "format" }

// Set takes the format's name.
func (f *objectFormat) Set(name string) error {
	if name != string(yamlObjects) && name != string(jsonObjects) {
		return usagef("use yaml or json")
	}
	*f = objectFormat(name)
	return nil
}

func (f objectFormat) write(w io.Writer, bundles []renderedBundle) error {
	if f == jsonObjects {
		return writeList(w, bundles)
	}
	for i := range bundles {
		if err := bundles[i].writeYAML(w); err != nil {
			return err
		}
	}
	return nil
}

func (b *renderedBundle) writeYAML(w io.Writer) error {
	if len(b.objects) == 0 {
		return nil
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "# Bundle %s from %s\n", b.name, b.path)
	for i := range b.objects {
		text, err := yaml.JSONToYAML(b.objects[i].JSON)
		if err != nil {
			return fmt.Errorf("%s: %w", b.objects[i].Source, err)
		}
		out.WriteString("---\n")
		out.Write(text)
	}
	_, err := w.Write(out.Bytes())
	return err
}

// writeList writes a List, which kubectl takes for its items.
func writeList(w io.Writer, bundles []renderedBundle) error {
	list := struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Items      []json.RawMessage `json:"items"`
	}{"v1", "List", []json.RawMessage{}}
	for _, b := range bundles {
		for _, object := range b.objects {
			list.Items = append(list.Items, object.JSON)
		}
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(list)
}
