package main

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

func TestFormer(t *testing.T) {
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Skip(err)
	}
	for holder, want := range map[string]bool{
		"here/" + process():                              true,
		fmt.Sprintf("here/%d-1", ended.Process.Pid):      true,
		fmt.Sprintf("here/%d-1", os.Getppid()):           false,
		fmt.Sprintf("elsewhere/%d-1", ended.Process.Pid): false,
		"here":   false,
		"here/x": false,
		"":       false,
	} {
		if got := former("here")(holder); got != want {
			t.Errorf("%q: got %v", holder, got)
		}
	}
}
