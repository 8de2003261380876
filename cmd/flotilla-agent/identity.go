package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process names this life of the agent on its host.
func process() string {
	return fmt.Sprintf("%d-%x", os.Getpid(), time.Now().UnixNano())
}

// former tells whether a holder "identity/pid-start" was an earlier life of the
// agent with this identity: its process is not there any more.
func former(identity string) func(holder string) bool {
	return func(holder string) bool {
		life, ok := strings.CutPrefix(holder, identity+"/")
		if !ok {
			return false
		}
		number, _, _ := strings.Cut(life, "-")
		pid, err := strconv.Atoi(number)
		if err != nil {
			return false
		}
		// In a container the agent has the same number in every life.
		return pid == os.Getpid() || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
	}
}
