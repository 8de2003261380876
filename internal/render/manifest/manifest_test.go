package manifest

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	const web = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\n"
	const webJSON = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web"}}`
	const db = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: db}\n"
	const dbJSON = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"db"}}`
	for name, tt := range map[string]struct {
		text  string
		want  []string
		lines []int
	}{
		"nothing":                          {"", nil, nil},
		"comments only":                    {"# a\n---\n# b\n", nil, nil},
		"one object":                       {web, []string{webJSON}, []int{1}},
		"leading separator and comment":    {"---\n# c\n\n" + web, []string{webJSON}, []int{4}},
		"two objects":                      {web + "---\n" + db, []string{webJSON, dbJSON}, []int{1, 6}},
		"empty documents between":          {web + "---\n---\n# x\n--- \n" + db, []string{webJSON, dbJSON}, []int{1, 9}},
		"Windows line ends":                {strings.ReplaceAll(web+"---\n"+db, "\n", "\r\n"), []string{webJSON, dbJSON}, []int{1, 6}},
		"byte order mark":                  {"\xef\xbb\xbf" + web, []string{webJSON}, []int{1}},
		"separator glued to text":          {web + "---apiVersion: v1\nkind: ConfigMap\nmetadata: {name: db}\n", []string{webJSON, dbJSON}, []int{1, 5}},
		"object on the separator's line":   {"--- " + dbJSON + "\n", []string{dbJSON}, []int{1}},
		"end marker":                       {web + "...\n" + db, []string{webJSON, dbJSON}, []int{1, 6}},
		"directive":                        {"%YAML 1.1\n---\n" + web, []string{webJSON}, []int{3}},
		"JSON":                             {dbJSON, []string{dbJSON}, []int{1}},
		"null values":                      {web + "  namespace: null\ndata: {a: null, b: x}\n", []string{`{"apiVersion":"v1","data":{"b":"x"},"kind":"ConfigMap","metadata":{"name":"web"}}`}, []int{1}},
		"null document":                    {"null\n---\n~\n", nil, nil},
		"list":                             {"apiVersion: v1\nkind: List\nitems: [" + dbJSON + ", " + webJSON + "]", []string{dbJSON, webJSON}, []int{1, 1}},
		"typed list":                       {"apiVersion: v1\nkind: ConfigMapList\nitems: [{metadata: {name: db}}]", []string{dbJSON}, []int{1}},
		"list in a list":                   {"apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: List, items: [" + dbJSON + "]}]", []string{dbJSON}, []int{1}},
		"empty list":                       {"apiVersion: v1\nkind: List\nitems: []", nil, nil},
		"numbers and no HTML escapes":      {db + "data: {1: <a&b>, true: 1e3, big: 9007199254740993}", []string{`{"apiVersion":"v1","data":{"1":"<a&b>","big":9007199254740993,"true":1000},"kind":"ConfigMap","metadata":{"name":"db"}}`}, []int{1}},
		"separator inside a block scalar":  {db + "data:\n  x: |\n    ---\n    y\n", []string{`{"apiVersion":"v1","data":{"x":"---\ny\n"},"kind":"ConfigMap","metadata":{"name":"db"}}`}, []int{1}},
		"a kind that only ends like lists": {"apiVersion: a/v1\nkind: AllowList\nmetadata: {name: db}\nitems: [x]", []string{`{"apiVersion":"a/v1","items":["x"],"kind":"AllowList","metadata":{"name":"db"}}`}, []int{1}},
	} {
		t.Run(name, func(t *testing.T) {
			parsed, err := Parse([]byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			if len(parsed.Docs) != len(tt.want) {
				t.Fatalf("%d objects, want %d", len(parsed.Docs), len(tt.want))
			}
			for i, doc := range parsed.Docs {
				if string(doc.JSON) != tt.want[i] || doc.Line != tt.lines[i] {
					t.Errorf("line %d: %s\nwant line %d: %s", doc.Line, doc.JSON, tt.lines[i], tt.want[i])
				}
			}
		})
	}
}

func TestParseSaysWhatIsWrong(t *testing.T) {
	const head = "apiVersion: v1\nkind: ConfigMap\n"
	for name, tt := range map[string]struct {
		text    string
		line    int
		message string
	}{
		"no YAML":                {"---\n# x\n---\nb: c: d\n", 4, `mapping values are not allowed in this context (near "b: c: d")`},
		"a text":                 {"\nhello\n", 2, "no Kubernetes object but a text"},
		"a list":                 {"- a\n", 1, "no Kubernetes object but a list"},
		"no kind":                {"apiVersion: v1\nmetadata: {name: x}\n", 1, "kind is missing"},
		"no apiVersion":          {"kind: Pod\nmetadata: {name: x}\n", 1, "apiVersion is missing"},
		"no metadata":            {head, 1, "this ConfigMap has no metadata.name"},
		"no name":                {head + "metadata: {labels: {a: b}}\n", 1, "this ConfigMap has no metadata.name"},
		"generated name":         {head + "metadata: {generateName: x-}\n", 1, "metadata.generateName"},
		"a number for a name":    {head + "metadata: {name: 12}\n", 1, "metadata.name is the number 12 and not a string"},
		"a boolean annotation":   {head + "metadata: {name: x, annotations: {a/b: true}}\n", 1, `metadata.annotations["a/b"] of ConfigMap x is the boolean true: put it in quotes`},
		"a list of labels":       {head + "metadata: {name: x, labels: [a]}\n", 1, "metadata.labels of ConfigMap x is a list"},
		"a template not quoted":  {head + "metadata: {name: {{ .x }}}\n", 3, "a template in braces needs quotes"},
		"no object in a list":    {"apiVersion: v1\nkind: List\nitems: [1]\n", 1, "no Kubernetes object but the number 1"},
		"not a number":           {head + "metadata: {name: x}\ndata: {a: .nan}\n", 1, "no number that JSON can hold"},
		"second document's line": {head + "metadata: {name: x}\n---\n\nkind: x\n", 6, "apiVersion is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(tt.text))
			problems, ok := errors.AsType[Problems](err)
			if !ok || len(problems) != 1 {
				t.Fatalf("got %v, want a problem", err)
			}
			if problem := problems[0]; problem.Line != tt.line || !strings.Contains(problem.Message, tt.message) {
				t.Errorf("got %v, want line %d: %s", problem, tt.line, tt.message)
			}
		})
	}
}

func TestParseTellsWhatIsForeign(t *testing.T) {
	parsed, err := Parse([]byte("replicas: 1\nimage: x\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"))
	want := Problem{Line: 1, Message: "this is no Kubernetes object, apiVersion and kind are missing (it has image, replicas)"}
	if err != nil || len(parsed.Docs) != 1 || len(parsed.Foreign) != 1 || parsed.Foreign[0] != want {
		t.Errorf("got %+v, %v", parsed, err)
	}
}

func TestParseWarnsOfKeysThatAreThereTwice(t *testing.T) {
	parsed, err := Parse([]byte("# c\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n  a: one\n  a: two\n"))
	if err != nil {
		t.Fatal(err)
	}
	if len(parsed.Warnings) != 1 || parsed.Warnings[0].Error() != `line 8: key "a" is there twice, the last one holds` {
		t.Errorf("got %v", parsed.Warnings)
	}
	if !strings.Contains(string(parsed.Docs[0].JSON), `"a":"two"`) {
		t.Errorf("got %s, want the last value", parsed.Docs[0].JSON)
	}
}

func TestParseSaysAllThatIsWrong(t *testing.T) {
	_, err := Parse([]byte("kind: x\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n---\na: b: c\n---\n- x\n"))
	problems, _ := errors.AsType[Problems](err)
	var lines []int
	for _, p := range problems {
		lines = append(lines, p.Line)
	}
	if !slices.Equal(lines, []int{1, 7, 9}) {
		t.Errorf("lines %v of %v", lines, err)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n---\n", "--- {a: b}\n...\n", "- [\n---", "%YAML 1.2\n---\n",
		"kind: List\napiVersion: v1\nitems: [{}]", "\xef\xbb\xbf---\r\n", "a: &x [*x]\n", "? {a: b}\n: c\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		lines := strings.Count(string(text), "\n") + 1
		parsed, err := Parse(text)
		if err != nil {
			if problems, ok := errors.AsType[Problems](err); !ok || problems[0].Line < 1 {
				t.Fatalf("an error without a place: %v", err)
			}
			return
		}
		for _, doc := range parsed.Docs {
			if doc.Line < 1 || doc.Line > lines {
				t.Fatalf("line %d of %d", doc.Line, lines)
			}
			again, err := Parse(doc.JSON)
			if err != nil || len(again.Docs) != 1 {
				t.Fatalf("what was read cannot be read again: %s: %v", doc.JSON, err)
			}
			if string(again.Docs[0].JSON) != string(doc.JSON) {
				t.Fatalf("not canonical: %s and %s", doc.JSON, again.Docs[0].JSON)
			}
		}
	})
}

// TestReaderRemembersWhatComesAgain tells what is remembered by its address.
func TestReaderRemembersWhatComesAgain(t *testing.T) {
	text := func(name string) []byte {
		return []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n")
	}
	r := NewReader(1 << 20)
	read := func(by func([]byte) (*Parsed, error), name string) *Parsed {
		t.Helper()
		parsed, err := by(text(name))
		if err != nil || parsed.Docs[0].Name != name {
			t.Fatalf("got %v, %v", parsed, err)
		}
		return parsed
	}
	as := func(text []byte) (*Parsed, error) { return r.ParseAs("key", text) }
	for name, tt := range map[string]struct {
		first, second func([]byte) (*Parsed, error)
		same          bool
	}{
		"once":         {r.Parse, r.Parse, false},
		"looked ahead": {r.LookAhead, r.Parse, true},
		"named":        {as, as, true},
	} {
		first, second := read(tt.first, strings.ReplaceAll(name, " ", "-")), read(tt.second, strings.ReplaceAll(name, " ", "-"))
		if (first == second) != tt.same {
			t.Errorf("%s: remembered: %v, want %v", name, first == second, tt.same)
		}
	}
	if second, third := read(r.Parse, "once"), read(r.Parse, "once"); second != third {
		t.Error("what came twice is not remembered")
	}
	if _, err := r.LookAhead([]byte("{")); err == nil {
		t.Error("no error for what is no YAML")
	}
}
