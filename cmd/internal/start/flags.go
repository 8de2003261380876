package start

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Size is a flag for bytes, which are written as a number or as a quantity such
// as 512Mi. What stands in bytes is the default; 0 is shown as none.
func Size(bytes *int64, least int64) pflag.Value { return size{bytes, least} }

// Count is a flag for how many there may be, which is one at the least. What
// stands in n is the default; 0 is shown as none.
func Count(n *int) pflag.Value { return count{n} }

type size struct {
	bytes *int64
	least int64
}

// Set reads a number or a quantity.
func (s size) Set(text string) error {
	q, err := resource.ParseQuantity(text)
	if err != nil || q.CmpInt64(math.MaxInt64) >= 0 {
		return errors.New("it is no size: write bytes, or a quantity such as 512Mi")
	}
	if q.CmpInt64(s.least) < 0 {
		return fmt.Errorf("it must be at least %d", s.least)
	}
	*s.bytes = q.Value()
	return nil
}

// String is the value.
func (s size) String() string {
	if *s.bytes == 0 {
		return ""
	}
	return resource.NewQuantity(*s.bytes, resource.BinarySI).String()
}

// Type names what is to be written.
func (size) Type() string { return "bytes" }

type count struct{ n *int }

// Set reads a number.
func (c count) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return errors.New("it must be a whole number, and at least 1")
	}
	*c.n = n
	return nil
}

// String is the value.
func (c count) String() string {
	if *c.n == 0 {
		return ""
	}
	return strconv.Itoa(*c.n)
}

// Type names what is to be written.
func (count) Type() string { return "int" }
