package templating

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
)

// The names of functions that are put into templates.
const (
	// stepFunction is called in every turn of every loop.
	stepFunction = "loopStep"
	// passFunction stands behind every command.
	passFunction = "passValue"
)

// functions are those of sprig and of Go's templates that are listed here; each
// is paid for before it runs. What reads the hub's surroundings is not there at
// all; for what gives something else each time, or needs a whole CPU, there is a
// reason instead: values that differ each time would deploy for ever.
func functions(b *budget) template.FuncMap {
	known := sprig.TxtFuncMap()
	maps.Copy(known, template.FuncMap{
		"until": until, "untilStep": untilStep, "seq": seq, "keys": keys, "values": values,
		"print": fmt.Sprint, "printf": fmt.Sprintf, "println": fmt.Sprintln,
		"html": template.HTMLEscaper, "js": template.JSEscaper, "urlquery": template.URLQueryEscaper,
	})
	funcs := template.FuncMap{}
	for _, name := range strings.Fields(plainFunctions) {
		funcs[name] = known[name]
	}
	for _, name := range strings.Fields(linearFunctions) {
		funcs[name] = b.guard(name, known[name], nothing)
	}
	for name, price := range prices {
		funcs[name] = b.guard(name, known[name], price)
	}
	for _, name := range unstable() {
		funcs[name] = refuse(name, "gives something else each time, so that the bundle would be deployed again and again")
	}
	funcs["derivePassword"] = refuse("derivePassword", "takes more time and memory than the hub has for each cluster")
	funcs[stepFunction], funcs[passFunction] = b.step, b.pass
	return funcs
}

func unstable() []string {
	return []string{
		"now", "ago", "uuidv4", "shuffle", "bcrypt", "htpasswd", "encryptAES",
		"randAlpha", "randAlphaNum", "randAscii", "randNumeric", "randBytes", "randInt",
		"genPrivateKey", "genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey",
		"genSignedCert", "genSignedCertWithKey", "buildCustomCert",
	}
}

func refuse(name, why string) func(...any) (string, error) {
	return func(...any) (string, error) {
		return "", fmt.Errorf("%s %s; keep the value in Git or in a Secret", name, why)
	}
}

var errTooLong = errors.New("more items than a template may make up")

func until(count int) ([]int, error) { return untilStep(0, count, 1) }

// untilStep counts from start to stop, which it does not include.
func untilStep(start, stop, step int) ([]int, error) {
	var out []int
	if step == 0 {
		return out, nil
	}
	for i := start; step > 0 && i < stop || step < 0 && i > stop; i += step {
		if len(out) >= maxItems {
			return nil, fmt.Errorf("%d to %d: %w (%d)", start, stop, errTooLong, maxItems)
		}
		out = append(out, i)
	}
	return out, nil
}

// seq counts as the shell's seq does: to last, first to last, or first to last
// by a step.
func seq(numbers ...int) (string, error) {
	first, last, step := 1, 0, 0
	switch len(numbers) {
	case 1:
		last = numbers[0]
	case 2:
		first, last = numbers[0], numbers[1]
	case 3:
		first, step, last = numbers[0], numbers[1], numbers[2]
	default:
		return "", nil
	}
	if step == 0 {
		step = 1
		if last < first {
			step = -1
		}
	}
	end := last + 1
	if step < 0 {
		end = last - 1
	}
	items, err := untilStep(first, end, step)
	return strings.Trim(fmt.Sprint(items), "[]"), err
}

// keys are the keys of maps, sorted within each.
func keys(all ...map[string]any) []string {
	out := []string{}
	for _, one := range all {
		out = append(out, slices.Sorted(maps.Keys(one))...)
	}
	return out
}

// values are the values of a map in the order of its keys.
func values(of map[string]any) []any {
	out := make([]any, 0, len(of))
	for _, key := range keys(of) {
		out = append(out, of[key])
	}
	return out
}
