package templating

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/Masterminds/sprig/v3"
)

// No template may take the memory or the time of the process that fills it in:
// it serves others as well.
func TestTemplatesTakeNoMoreThanTheirShare(t *testing.T) {
	const double = `${ $x := "aaaaaaaa" }${ range until 60 }%s${ end }`
	for name, text := range map[string]string{
		"indent":               `${ indent 20000000000 "x" }`,
		"nindent":              `${ nindent 20000000000 "x" }`,
		"repeat":               `${ repeat 9000000000 "abc" }`,
		"replace":              `${ replace "a" (repeat 1000000 "a") (repeat 1000000 "a") }`,
		"replace nothing":      `${ replace "" (repeat 1000000 "a") (repeat 1000000 "a") }`,
		"join":                 `${ join (repeat 1000000 "a") (until 10000) }`,
		"wrapWith":             `${ wrapWith 1 (repeat 900000 "a") (repeat 100000 "a") }`,
		"regexReplaceAll":      `${ regexReplaceAll "a" (repeat 100000 "a") (repeat 100000 "$0") }`,
		"regex of one match":   `${ regexReplaceAll "a+" (repeat 100000 "a") (repeat 100000 "$0") }`,
		"literal":              `${ regexReplaceAllLiteral "a" (repeat 100000 "a") (repeat 100000 "b") }`,
		"long regex":           `${ regexMatch (repeat 100000 "(a{1000})") "a" }`,
		"slow regex":           `${ range until 9999 }${ regexMatch "(a{1,100}){1,10}$" (repeat 1000 "a") }${ end }`,
		"widths":               `${ printf (repeat 10000 "%999999d") 1 }`,
		"widths in arguments":  `${ printf (repeat 10000 "%*d") 999999 1 }`,
		"argument many times":  `${ printf (repeat 10000 "%[1]s") (repeat 100000 "a") }`,
		"split":                `${ split "" (repeat 1000000 "a") }`,
		"splitList":            `${ range until 9999 }${ $_ := splitList "" (repeat 1000000 "a") }${ end }`,
		"uniq":                 `${ uniq (splitList "" (repeat 50000 "a")) }`,
		"double by cat":        fmt.Sprintf(double, `${ $x = cat $x $x }`),
		"double by print":      fmt.Sprintf(double, `${ $x = print $x $x }`),
		"double by printf":     fmt.Sprintf(double, `${ $x = printf "%[1]s%[1]s" $x }`),
		"double by quote":      fmt.Sprintf(double, `${ $x = quote $x $x }`),
		"double by list":       fmt.Sprintf(double, `${ $x = list $x $x }`) + `${ $x }`,
		"double by dict":       fmt.Sprintf(double, `${ $x = dict "a" $x "b" $x }`) + `${ $x | toJson }`,
		"double by a method":   `${ $t := toDate "2006-01-02" "2022-12-22" }${ $x := "2222" }${ range until 60 }${ $x = $t.Format $x }${ end }`,
		"methods in a pipe":    `${ $t := toDate "2006-01-02" "2022-12-22" }${ "2222" ` + strings.Repeat("| $t.Format ", 60) + `}`,
		"itself":               `${ $d := dict }${ $_ := set $d "a" $d }${ $d }`,
		"itself in its list":   `${ $d := dict }${ $_ := set $d "a" (list $d) }${ print $d }`,
		"passwords":            `${ range until 9999 }${ derivePassword 1 "long" "a" "b" "c" }${ end }`,
		"many lists":           `${ range until 9999 }${ $_ := until 9999 }${ end }`,
		"html":                 `${ html (repeat 1000000 "\"") }`,
		"aliases":              `${ printf "[&a %s%s]" (repeat 1000 "x") (repeat 100000 ", *a") }`,
		"sums of many numbers": fmt.Sprintf(`${ mulf %s }`, strings.Repeat("1e300 ", 9000)),
	} {
		t.Run(name, func(t *testing.T) {
			c := ForValues()
			eval, err := c.Value(text, "x")
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err = eval(NewScope(probe("1")))
			runtime.ReadMemStats(&after)
			if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 200 {
				t.Errorf("it took %d MiB", took)
			}
			if err == nil {
				t.Error("it must be refused")
			}
		})
	}
}

// What a template did to the values of the cluster before it was refused does
// no harm to the next template of the bundle.
func TestAScopeThatHoldsItself(t *testing.T) {
	c, s := ForValues(), NewScope(probe("1"))
	for _, text := range []string{`${ set .ClusterValues "a" .ClusterValues }`, `${ .ClusterValues }`, `${ print .ClusterValues }`, `${ . | toJson }`} {
		eval, err := c.Value(text, "x")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := eval(s); err == nil {
			t.Errorf("%s: it must be refused", text)
		}
	}
}

// Many texts for many clusters are in memory together.
func TestATotalBoundsAllClusters(t *testing.T) {
	c := ForValues()
	c.CountIn(&Total{})
	eval, err := c.Value(map[string]any{"a": `${ repeat 1000000 "a" }`, "b": `${ repeat 1000000 "b" }`}, "x")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		c.Reset()
		if _, err := eval(NewScope(probe("1"))); err != nil {
			if i < 10 {
				t.Errorf("only %d clusters: %v", i, err)
			}
			return
		}
	}
	t.Error("it must be refused")
}

// A function that sprig comes to have must be looked at before templates may
// use it.
func TestEveryFunctionIsListed(t *testing.T) {
	funcs, known := functions(&budget{}), sprig.TxtFuncMap()
	gone := []string{"env", "expandenv", "getHostByName"}
	for name := range known {
		if funcs[name] == nil && !slices.Contains(gone, name) {
			t.Errorf("%s is not listed", name)
		}
	}
	for name, function := range funcs {
		if function == nil {
			t.Errorf("%s is there without a function", name)
		}
	}
}

// Functions that are paid for give what they gave.
func TestFunctionsGiveWhatTheyGive(t *testing.T) {
	for text, want := range map[string]string{
		`${ indent 2 "a\nb" }`:                                      "  a\n  b",
		`${ list 3 1 2 | join "," }`:                                "3,1,2",
		`${ regexReplaceAll "a(x*)b" "-ab-axxb-" "${1}W" }`:         "-W-xxW-",
		`${ printf "%5.1f|%-4s|%[1]v" 2.5 "a" }`:                    "  2.5|a   |2.5",
		`${ dict "a" 1 "b" (list 1 2) | toJson }`:                   `{"a":1,"b":[1,2]}`,
		`${ "a,b" | splitList "," | first | upper | quote }`:        `"A"`,
		`${ list 1 1 2 | uniq }`:                                    "[1 2]",
		`${ keys .ClusterLabels | join "," }`:                       "a,b",
		`${ values .ClusterLabels | join "," }`:                     "la1,lb1",
		`${ semverCompare ">=1.20" "1.21.3" }`:                      "true",
		`${ toDate "2006-01-02" "2022-03-04" | date "02.01.2006" }`: "04.03.2022",
		`${ merge (dict "a" 1) (dict "a" 2 "b" 3) | toJson }`:       `{"a":1,"b":3}`,
		`${ add 1 2 | mul 3 }`:                                      "9",
		`${ addf 1.5 2 }`:                                           "3.5",
		`${ "x" | repeat 3 }`:                                       "xxx",
		`${ fromJson "{\"a\":{\"b\":1}}" | dig "a" "b" 0 }`:         "1",
		`${ regexFindAll "[0-9]" "a1b2" -1 | join "" }`:             "12",
		`${ and 1 "" }${ or "" "x" }${ not true }`:                  "xfalse",
		`${ html "<" }${ urlquery "a b" }${ print 1 2 "a" }`:        "&lt;a+b1 2a",
	} {
		eval, err := ForValues().Text(text, "x")
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := eval(NewScope(probe("1"))); err != nil || got != want {
			t.Errorf("%s: got %q, %v; want %q", text, got, err, want)
		}
	}
}
