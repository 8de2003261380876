//go:build !linux

package lab

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
)

var errUnsupported = errors.New("the lab runs on Linux only: it relies on the kernel to end its processes")

func supported() error                                     { return errUnsupported }
func childAttributes() *syscall.SysProcAttr                { return nil }
func backgroundAttributes() *syscall.SysProcAttr           { return nil }
func signalGroup(int, syscall.Signal) error                { return errUnsupported }
func startTime(int) uint64                                 { return 0 }
func residentBytes(int) int64                              { return 0 }
func reserve(string) (net.Listener, error)                 { return nil, errUnsupported }
func inDir(string, func(string) error) error               { return errUnsupported }
func exited(context.Context, int) (<-chan struct{}, error) { return nil, errUnsupported }
func closeOnExec(*os.File)                                 {}
