package meter

import (
	"sync"
	"time"
)

// sampleEvery is how often memory is looked at.
const sampleEvery = 250 * time.Millisecond

// Peak watches the memory of a process and of what it starts.
type Peak struct {
	pid  int
	stop chan struct{}
	done sync.WaitGroup

	mu        sync.Mutex
	anonymous int64
	renderers int64
}

// WatchMemory starts to watch.
func WatchMemory(pid int) (*Peak, error) {
	if err := resetPeak(pid); err != nil {
		return nil, err
	}
	p := &Peak{pid: pid, stop: make(chan struct{})}
	p.done.Go(p.run)
	return p, nil
}

func (p *Peak) run() {
	ticker := time.NewTicker(sampleEvery)
	defer ticker.Stop()
	for {
		p.sample()
		select {
		case <-p.stop:
			return
		case <-ticker.C:
		}
	}
}

func (p *Peak) sample() {
	own, err := MemoryOf(p.pid)
	if err != nil {
		return
	}
	var others int64
	for _, child := range Children(p.pid) {
		if m, err := MemoryOf(child); err == nil {
			others += m.Anonymous
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.anonymous, p.renderers = max(p.anonymous, own.Anonymous), max(p.renderers, others)
}

// PeakMemory is the most that a process has held, in bytes.
type PeakMemory struct {
	// Resident and Anonymous are of the process, Children the anonymous
	// memory of what it has started.
	Resident, Anonymous, Children int64
}

// Stop ends the watch and returns the most that it saw.
func (p *Peak) Stop() (PeakMemory, error) {
	close(p.stop)
	p.done.Wait()
	m, err := MemoryOf(p.pid)
	p.mu.Lock()
	defer p.mu.Unlock()
	return PeakMemory{Resident: m.Peak, Anonymous: max(p.anonymous, m.Anonymous), Children: p.renderers}, err
}
