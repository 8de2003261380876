package lab

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports come from below the range that the kernel gives to outgoing
// connections, so that a port of a part that is stopped stays free.
const (
	firstPort = 20000
	portCount = 10000
)

// ports are reserved among all labs of this machine until they are released.
type ports struct {
	reserved []net.Listener
}

// take returns a port of 127.0.0.1 on which nobody listens.
func (p *ports) take() (string, error) {
	for range 1000 {
		port := strconv.Itoa(firstPort + rand.IntN(portCount)) //nolint:gosec // nothing secret about a port
		reservation, err := reserve("port/" + port)
		if err != nil {
			continue
		}
		probe, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port)) //nolint:noctx // closed at once
		if err != nil {
			_ = reservation.Close()
			continue
		}
		p.reserved = append(p.reserved, reservation)
		return port, probe.Close()
	}
	return "", errors.New("no free port between 20000 and 29999 on 127.0.0.1")
}

func (p *ports) release() {
	for _, reservation := range p.reserved {
		_ = reservation.Close()
	}
}
