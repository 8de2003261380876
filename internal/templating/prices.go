package templating

import (
	"fmt"
	"reflect"
	"regexp/syntax"
	"slices"
	"strings"
)

// plainFunctions take the same little time whatever they are given.
const plainFunctions = `
	hello get hasKey dig default empty coalesce ternary typeOf typeIs typeIsLike kindOf kindIs
	first mustFirst last mustLast isAbs osIsAbs all any plural until untilStep seq`

// linearFunctions take time, and give something, in proportion to what they are
// given.
const linearFunctions = `
	date date_in_zone date_modify dateInZone dateModify duration durationRound htmlDate htmlDateInZone
	must_date_modify mustDateModify mustToDate toDate unixEpoch
	abbrev abbrevboth trunc trim upper lower title untitle substr trimall trimAll trimSuffix trimPrefix
	nospace initials swapcase snakecase camelcase kebabcase contains hasPrefix hasSuffix
	quote squote cat wrap sha1sum sha256sum sha512sum adler32sum toString toStrings sortAlpha
	atoi int64 int float64 toDecimal add1 add sub div mod mul biggest max min maxf minf ceil floor round
	compact mustCompact fromJson toJson toPrettyJson toRawJson mustFromJson mustToJson mustToPrettyJson mustToRawJson
	deepCopy mustDeepCopy deepEqual base dir clean ext osBase osClean osDir osExt
	b64enc b64dec b32enc b32dec tuple list dict set unset pluck keys pick omit values
	merge mergeOverwrite mustMerge mustMergeOverwrite append push mustAppend mustPush prepend mustPrepend
	rest mustRest initial mustInitial reverse mustReverse slice mustSlice concat chunk mustChunk
	decryptAES fail regexQuoteMeta urlParse urlJoin
	print println html js urlquery`

// A price is what a call costs beside what it is given: how much it makes, and
// how much work that is.
type price func(c call) (makes, work int)

func nothing(call) (makes, work int) { return 0, 0 }

// prices are those of functions that can make much of little, or take long.
var prices = map[string]price{
	"repeat":  func(c call) (int, int) { return c.times(c.count(0), len(c.text(1))), 0 },
	"indent":  indentPrice,
	"nindent": indentPrice,
	"replace": func(c call) (int, int) {
		return c.times(strings.Count(c.text(2), c.text(0)), len(c.text(1))), 0
	},
	"join":     func(c call) (int, int) { return c.times(c.items(1), len(c.text(0))), 0 },
	"wrapWith": func(c call) (int, int) { return c.times(len(c.text(2))/max(1, c.count(0))+1, len(c.text(1))), 0 },
	"printf":   printfPrice,

	"split":     func(c call) (int, int) { return c.times(strings.Count(c.text(1), c.text(0)), 4*itemSize), 0 },
	"splitn":    func(c call) (int, int) { return c.times(strings.Count(c.text(2), c.text(0)), 4*itemSize), 0 },
	"splitList": func(c call) (int, int) { return c.times(strings.Count(c.text(1), c.text(0)), itemSize), 0 },

	"uniq": squarePrice, "mustUniq": squarePrice, "has": squarePrice, "mustHas": squarePrice,
	"without": squarePrice, "mustWithout": squarePrice,
	"add1f": squarePrice, "addf": squarePrice, "subf": squarePrice, "mulf": squarePrice, "divf": squarePrice,

	"semver": regexFixed, "semverCompare": regexFixed,
	"regexMatch": regexPrice, "mustRegexMatch": regexPrice, "regexFind": regexPrice, "mustRegexFind": regexPrice,
	"regexFindAll": regexPrice, "mustRegexFindAll": regexPrice, "regexSplit": regexPrice, "mustRegexSplit": regexPrice,
	"regexReplaceAll": replacePrice, "mustRegexReplaceAll": replacePrice,
	"regexReplaceAllLiteral": replacePrice, "mustRegexReplaceAllLiteral": replacePrice,
}

func indentPrice(c call) (makes, work int) {
	return c.times(strings.Count(c.text(1), "\n")+1, c.count(0)), 0
}

// printfPrice takes every number in the format for a width, and a format that
// names its arguments for one that prints the longest each time.
func printfPrice(c call) (makes, work int) {
	format := c.text(0)
	for _, digits := range strings.FieldsFunc(format, func(r rune) bool { return r < '0' || r > '9' }) {
		makes += number(digits)
	}
	if stars := strings.Count(format, "*"); stars > 0 {
		makes += c.times(stars, maxWidth)
	}
	if strings.Contains(format, "[") {
		makes += c.times(strings.Count(format, "%"), c.size)
	}
	return makes, 0
}

// maxWidth is the greatest width that fmt heeds.
const maxWidth = 1_000_000

func number(digits string) int {
	n := 0
	for _, digit := range digits {
		if n = n*10 + int(digit-'0'); n > maxWidth {
			return maxWidth
		}
	}
	return n
}

// squarePrice is that of functions which compare each item with each, or whose
// numbers become longer with each.
func squarePrice(c call) (makes, work int) {
	items := len(c.args)
	for i := range c.args {
		items += c.items(i)
	}
	return 0, c.times(items, c.size)
}

// regexFixed is that of functions that take their text apart with a regular
// expression of their own.
func regexFixed(c call) (makes, work int) { return 0, c.times(100, c.size) }

// maxRegex is the longest regular expression: one can stand for a program a
// hundred times as long.
const maxRegex = 10_000

// regexPrice is that of a regular expression: each step of its program can be
// taken at each place of the text.
func regexPrice(c call) (makes, work int) {
	if len(c.text(0)) > maxRegex {
		return 0, maxWork + 1
	}
	parsed, err := syntax.Parse(c.text(0), syntax.Perl)
	if err != nil {
		return 0, 0 // it says so itself
	}
	steps := programSize(parsed)
	return 0, c.times(steps, len(c.text(1))+itemSize)
}

func programSize(e *syntax.Regexp) int {
	size := 1 + len(e.Rune)
	for _, below := range e.Sub {
		size += programSize(below)
	}
	if e.Op == syntax.OpRepeat {
		size *= max(1, e.Min, e.Max)
	}
	return min(size, maxWork+1)
}

// replacePrice adds what stands instead: at every place, with what was found
// for each dollar.
func replacePrice(c call) (makes, work int) {
	_, work = regexPrice(c)
	text, with := len(c.text(1)), c.text(2)
	return c.times(text+1, len(with)) + c.times(strings.Count(with, "$"), text), work
}

// call is a call of a function, whose arguments together have a size.
type call struct {
	args []reflect.Value
	size int
}

func (c call) text(i int) string {
	if i < len(c.args) && c.args[i].Kind() == reflect.String {
		return c.args[i].String()
	}
	return ""
}

func (c call) count(i int) int {
	if i < len(c.args) && c.args[i].CanInt() {
		return int(max(0, c.args[i].Int()))
	}
	return 0
}

// items is how many items a list has.
func (c call) items(i int) int {
	for i < len(c.args) {
		switch v := c.args[i]; v.Kind() {
		case reflect.Interface:
			c.args[i] = v.Elem()
			continue
		case reflect.Slice, reflect.Map:
			return v.Len()
		}
		break
	}
	return 0
}

// times multiplies, up to more than anything may be.
func (c call) times(a, b int) int {
	if a > 0 && b > (maxWork+1)/a {
		return maxWork + 1
	}
	return a * b
}

// guard returns a function that is paid for before it runs.
func (b *budget) guard(name string, function any, p price) any {
	f := reflect.ValueOf(function)
	out := []reflect.Type{f.Type().Out(0), reflect.TypeFor[error]()}
	in := make([]reflect.Type, f.Type().NumIn())
	for i := range in {
		in[i] = f.Type().In(i)
	}
	guarded := reflect.FuncOf(in, out, f.Type().IsVariadic())
	return reflect.MakeFunc(guarded, func(args []reflect.Value) []reflect.Value {
		if err := b.pay(args, p); err != nil {
			return []reflect.Value{reflect.Zero(out[0]), reflect.ValueOf(fmt.Errorf("%s: %w", name, err))}
		}
		results := f.Call
		if f.Type().IsVariadic() {
			results = f.CallSlice
		}
		if got := results(args); len(got) == len(out) {
			return got
		} else {
			return append(got, reflect.Zero(out[1]))
		}
	}).Interface()
}

func (b *budget) pay(args []reflect.Value, p price) error {
	size, err := weigh(args...)
	if err != nil {
		return err
	}
	makes, work := p(call{args: slices.Clone(args), size: size})
	if makes > maxText {
		return fmt.Errorf("what it gives can become longer than %d bytes", maxText)
	}
	return b.spend(size + makes + work)
}
