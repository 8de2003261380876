package templating

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
)

const (
	// maxSteps is how many turns the loops of what is filled in together may
	// take.
	maxSteps = 100_000
	// maxWork is how many bytes the functions of what is filled in together may
	// take in and give.
	maxWork = 32 << 20
	// maxText is how long one text may become, and how large a value.
	maxText = 1 << 20
	// maxItems is the longest list that a function may make up.
	maxItems = 10_000
	// maxDepth is how deep values may be nested. A value that holds itself has
	// no end.
	maxDepth = 200
	// itemSize is what an item of a list or map counts beside its text.
	itemSize = 16
	// maxMade and maxTotalWork bound what is filled in for all clusters of a
	// bundle together.
	maxMade      = 256 << 20
	maxTotalWork = 1 << 30
)

// Total is what the clusters of one bundle take together: what is filled in is
// in memory for all of them at once. A nil one does not count.
type Total struct{ made, work int }

func (t *Total) add(made, work int) error {
	if t == nil {
		return nil
	}
	t.made, t.work = t.made+made, t.work+work
	if t.made > maxMade || t.work > maxTotalWork {
		return errors.New("the templates of the bundle take more time or memory for all its clusters together than the hub has for one bundle; make them simpler, or move what is large to a chart's own templates")
	}
	return nil
}

// budget bounds what templates take. It counts and looks at no clock, so that
// the same template always ends in the same way.
type budget struct {
	steps, work int
	total       *Total
}

func (b *budget) reset() { b.steps, b.work = 0, 0 }

func (b *budget) step() (string, error) {
	b.steps++
	if b.steps > maxSteps {
		return "", fmt.Errorf("the loops of the templates take more than %d turns", maxSteps)
	}
	return "", nil
}

// spend counts work that is about to be done.
func (b *budget) spend(work int) error {
	if work < 0 || work > maxWork-b.work {
		b.work = maxWork
		return fmt.Errorf("the templates take more work than %d MiB of text would", maxWork>>20)
	}
	b.work += work
	return b.total.add(0, work)
}

// pass lets a value through that is not too large. It stands behind each
// command of each template.
func (b *budget) pass(value any) (any, error) {
	size, err := weigh(reflect.ValueOf(value))
	if err != nil {
		return nil, err
	}
	return value, b.spend(size)
}

// weigh returns the size of values, all of which must be small and have an end.
func weigh(values ...reflect.Value) (int, error) {
	s := scale{}
	for _, value := range values {
		if err := s.add(value, 0); err != nil {
			return 0, err
		}
	}
	return s.size, nil
}

type scale struct{ size int }

var errTooDeep = errors.New("a value that is nested too deep, or holds itself")

func (s *scale) add(value reflect.Value, depth int) error {
	if depth > maxDepth {
		return errTooDeep
	}
	s.size += itemSize
	switch value.Kind() {
	case reflect.String:
		s.size += value.Len()
	case reflect.Interface, reflect.Pointer:
		s.size -= itemSize
		if value.IsNil() {
			return nil
		}
		return s.add(value.Elem(), depth+1)
	case reflect.Slice, reflect.Array:
		return s.items(value, depth)
	case reflect.Map:
		return s.entries(value, depth)
	}
	return s.check()
}

func (s *scale) items(value reflect.Value, depth int) error {
	if value.Type().Elem().Kind() == reflect.Uint8 {
		s.size += value.Len()
		return s.check()
	}
	for i := range value.Len() {
		if err := s.add(value.Index(i), depth+1); err != nil {
			return err
		}
	}
	return s.check()
}

func (s *scale) entries(value reflect.Value, depth int) error {
	for entries := value.MapRange(); entries.Next(); {
		if err := s.add(entries.Key(), depth+1); err != nil {
			return err
		}
		if err := s.add(entries.Value(), depth+1); err != nil {
			return err
		}
	}
	return s.check()
}

func (s *scale) check() error {
	if s.size > maxText {
		return fmt.Errorf("a value that is longer than %d bytes", maxText)
	}
	return nil
}

// limitedText takes what a template writes, up to a limit.
type limitedText struct {
	strings.Builder
	budget *budget
	// free is how much of it costs nothing: the template's own text.
	free int
}

func (l *limitedText) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxText {
		return 0, fmt.Errorf("the text becomes longer than %d bytes", maxText)
	}
	if over := l.Len() + len(p) - max(l.free, l.Len()); over > 0 {
		if err := l.budget.spend(over); err != nil {
			return 0, err
		}
	}
	return l.Builder.Write(p)
}
