package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/flotilla-sh/flotilla/internal/digest"
)

// newLab makes the directory and takes possession of it.
func newLab(o Options, attached bool) (*Lab, error) {
	if err := supported(); err != nil {
		return nil, err
	}
	if err := o.resolve(); err != nil {
		return nil, err
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	possession, err := reserve("dir/" + digest.Of([]byte(o.Dir)))
	if err != nil {
		return nil, fmt.Errorf("a lab runs in %s already, or is just starting: see `flotilla lab status`", o.Dir)
	}
	made, err := prepare(o.Dir)
	if err != nil {
		return nil, errors.Join(err, possession.Close())
	}
	l := &Lab{
		options: o, made: made, began: time.Now(), attached: attached, keepLogs: o.KeepLogs,
		launcher: newLauncher(), spokes: map[string]*cluster{}, downAsked: make(chan struct{}),
		ports: &ports{reserved: []net.Listener{possession}},
	}
	if err := l.lay(); err != nil {
		return nil, errors.Join(err, l.Stop())
	}
	return l, nil
}

// resolve makes all paths absolute.
func (o *Options) resolve() error {
	for _, path := range []*string{&o.Dir, &o.Programs.ControlPlane, &o.Programs.Flotilla, &o.Programs.Hub, &o.Programs.Agent} {
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = absolute
	}
	return nil
}

// lay prepares every part without starting any.
func (l *Lab) lay() error {
	if err := l.save(); err != nil {
		return err
	}
	if err := l.linkPrograms(); err != nil {
		return err
	}
	var err error
	if l.gitPort, err = l.ports.take(); err != nil {
		return err
	}
	if l.hub, err = l.newCluster(Hub); err != nil {
		return err
	}
	l.add(Git, nil, l.gitServer())
	l.add(Hub, nil, l.hub.hubPrograms()...)
	for _, spoke := range l.options.Spokes {
		c, err := l.newCluster(spoke.Name)
		if err != nil {
			return err
		}
		l.spokes[spoke.Name] = c
		l.add(spoke.Name, c.join, c.spokePrograms()...)
	}
	if l.options.Products {
		l.addProducts()
	}
	l.control, err = serveControl(l)
	if err != nil {
		return err
	}
	return l.save()
}

// linkPrograms gives the multi-call program its names, by which processes
// can be told apart, and users a kubectl.
func (l *Lab) linkPrograms() error {
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok", "kubectl"} {
		if err := os.Symlink(l.options.Programs.ControlPlane, l.path("bin", name)); err != nil {
			return err
		}
	}
	return nil
}

func (l *Lab) gitServer() program {
	address := net.JoinHostPort("127.0.0.1", l.gitPort)
	return program{
		name: "git-server",
		path: l.options.Programs.Flotilla,
		args: []string{"lab", "git-server", "--root", l.path("git"), "--listen", address},
		dir:  l.options.Dir,
		ready: func(ctx context.Context) error {
			return poll(ctx, startLimit, func(ctx context.Context) error {
				conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
				if err != nil {
					return err
				}
				return conn.Close()
			})
		},
	}
}
