package helm

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"helm.sh/helm/v3/pkg/chart"

	"github.com/flotilla-sh/flotilla/internal/fault"
)

// schemaName is how a schema is called in its own references, as Helm calls it.
const schemaName = "file:///values.schema.json"

// closed is a loader that loads nothing: what a schema refers to would be read
// from the network or the disk of the machine that renders. The standard
// schemas come with the library and are not asked of it.
type closed struct{ asked []string }

var errClosed = errors.New("schemas of other places are not fetched")

// Load refuses, except that a name without a place stands for anything, as for
// Helm.
func (c *closed) Load(url string) (any, error) {
	if strings.HasPrefix(url, "urn:") {
		return true, nil
	}
	c.asked = append(c.asked, url)
	return nil, errClosed
}

// compile returns the schema of a chart. It says what else that refers to,
// where it does.
func compile(schema []byte) (compiled *jsonschema.Schema, asked string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("unable to validate schema: %v", r)
		}
	}()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, "", err
	}
	places := &closed{}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(places)
	if err = compiler.AddResource(schemaName, document); err == nil {
		compiled, err = compiler.Compile(schemaName)
	}
	if len(places.asked) > 0 {
		return nil, places.asked[0], err
	}
	return compiled, "", err
}

// dropRemoteSchemas removes schemas that refer to other places.
func dropRemoteSchemas(c *chart.Chart) []fault.Note {
	var warnings []fault.Note
	if c.Schema != nil {
		if _, asked, _ := compile(c.Schema); asked != "" {
			c.Schema = nil
			warnings = append(warnings, fault.Note{Message: fmt.Sprintf("values.schema.json of the chart %s refers to %s, which is not fetched: the values are not checked against it", c.Name(), asked)})
		}
	}
	for _, dep := range c.Dependencies() {
		warnings = append(warnings, dropRemoteSchemas(dep)...)
	}
	return warnings
}

// checkValues returns what in the values of a chart and its parts does not fit
// their schemas.
func checkValues(c *chart.Chart, values map[string]any) []string {
	var wrong []string
	if c.Schema != nil {
		if err := checkOne(c.Schema, values); err != nil {
			wrong = append(wrong, c.Name()+":", err.Error())
		}
	}
	for _, dep := range c.Dependencies() {
		switch own := values[dep.Name()].(type) {
		case nil:
		case map[string]any:
			wrong = append(wrong, checkValues(dep, own)...)
		default:
			wrong = append(wrong, dep.Name()+":", fmt.Sprintf("invalid type for values: expected object (map), got %T", own))
		}
	}
	return wrong
}

func checkOne(schema []byte, values map[string]any) (err error) {
	compiled, _, err := compile(schema)
	if err != nil {
		return err
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("unable to validate schema: %v", r)
		}
	}()
	err = compiled.Validate(values)
	if err == nil {
		return nil
	}
	return errors.New(strings.TrimPrefix(err.Error(), "jsonschema validation failed with '"+schemaName+"#'\n"))
}
