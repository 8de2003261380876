package reconcile_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flotilla-sh/flotilla/internal/reconcile"
)

func TestALookThatFailsIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		reconcile.Persist(t.Context(), func() error {
			if looks++; looks < 4 {
				return errors.New("not now")
			}
			return nil
		})
		if looks != 1 {
			t.Errorf("%d looks at once", looks)
		}
		time.Sleep(time.Hour)
		if looks != 4 {
			t.Errorf("%d looks, want 4", looks)
		}
	})
}

func TestNoLookAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		looks := 0
		reconcile.Persist(ctx, func() error { looks++; return errors.New("not now") })
		time.Sleep(20 * time.Second)
		cancel()
		at := looks
		time.Sleep(time.Hour)
		if looks != at || at < 2 {
			t.Errorf("%d looks before the end and %d after", at, looks-at)
		}
	})
}
