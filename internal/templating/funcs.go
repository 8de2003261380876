package templating

import (
	"errors"
	"fmt"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
)

const (
	// stepFunction is called in every turn of every loop.
	stepFunction = "loopStep"
	// maxSteps is how many turns the loops of what is filled in together may
	// take.
	maxSteps = 100_000
	// maxText is how long one filled-in text may become.
	maxText = 1 << 20
	// maxItems is the longest list that a function may make up.
	maxItems = 10_000
)

// budget counts the turns of loops.
type budget struct{ steps int }

func (b *budget) reset() { b.steps = 0 }

func (b *budget) step() (string, error) {
	b.steps++
	if b.steps > maxSteps {
		return "", fmt.Errorf("the loops of the templates take more than %d turns", maxSteps)
	}
	return "", nil
}

// limitedText takes what a template writes, up to a limit.
type limitedText struct{ strings.Builder }

func (l *limitedText) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxText {
		return 0, fmt.Errorf("the text becomes longer than %d bytes", maxText)
	}
	return l.Builder.Write(p)
}

// functions are those of sprig, without those that read the hub's surroundings
// and those that give something else each time: values that differ each time
// would deploy for ever.
func functions(b *budget) template.FuncMap {
	funcs := sprig.TxtFuncMap()
	for _, name := range []string{"env", "expandenv", "getHostByName", "include", "tpl"} {
		delete(funcs, name)
	}
	for _, name := range unstable() {
		funcs[name] = refuse(name)
	}
	funcs["until"] = until
	funcs["untilStep"] = untilStep
	funcs["seq"] = seq
	funcs["repeat"] = repeat
	funcs[stepFunction] = b.step
	return funcs
}

func unstable() []string {
	return []string{
		"now", "ago", "uuidv4", "shuffle", "bcrypt", "htpasswd", "encryptAES",
		"randAlpha", "randAlphaNum", "randAscii", "randNumeric", "randBytes", "randInt",
		"genPrivateKey", "genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey",
		"genSignedCert", "genSignedCertWithKey",
	}
}

func refuse(name string) func(...any) (string, error) {
	return func(...any) (string, error) {
		return "", fmt.Errorf("%s gives something else each time, so that the bundle would be deployed again and again; keep the value in Git or in a Secret", name)
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

func repeat(count int, text string) (string, error) {
	if count > 0 && len(text) > maxText/count {
		return "", fmt.Errorf("repeat %d: longer than %d bytes", count, maxText)
	}
	return strings.Repeat(text, max(0, count)), nil
}
