package cache

import "testing"

func TestLRU(t *testing.T) {
	c := New[int](10)
	c.Put("a", 1, 4)
	c.Put("b", 2, 4)
	c.Get("a")
	c.Put("c", 3, 4)
	for key, want := range map[string]bool{"a": true, "b": false, "c": true} {
		if _, ok := c.Get(key); ok != want {
			t.Errorf("%s remembered: %v, want %v", key, ok, want)
		}
	}
}

func TestLRUReplacesAndRefuses(t *testing.T) {
	c := New[string](10)
	c.Put("a", "old", 9)
	c.Put("a", "new", 9)
	if got, _ := c.Get("a"); got != "new" {
		t.Errorf("got %q, want the replaced value", got)
	}
	c.Put("huge", "x", 11)
	if _, ok := c.Get("huge"); ok {
		t.Error("a value larger than the cache was remembered")
	}
	if _, ok := c.Get("a"); !ok {
		t.Error("a value that was too large drove another one out")
	}
}
