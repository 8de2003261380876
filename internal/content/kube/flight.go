package kube

import (
	"context"
	"time"
)

// flightTime bounds a put that several may wait for: far more than any takes.
const flightTime = 2 * time.Minute

// once makes known what key stands for by do, unless it is known already. All who
// ask for one key at one time wait for the same do, each as long as it likes: that
// the first of them gives up must not be an error of the others.
func (s *Store) once(ctx context.Context, key string, do func(context.Context) error) error {
	if _, ok := s.known.Load(key); ok {
		return nil
	}
	landed := s.flights.DoChan(key, func() (any, error) {
		if _, ok := s.known.Load(key); ok {
			return nil, nil // another flight has just landed
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flightTime)
		defer cancel()
		err := do(ctx)
		if err == nil {
			s.known.Store(key, struct{}{})
		}
		return nil, err
	})
	select {
	case <-ctx.Done():
		return ctx.Err()
	case result := <-landed:
		return result.Err
	}
}
