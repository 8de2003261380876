package main

import (
	"strings"
	"testing"
	"time"
)

func TestNoClusterOfItsOwn(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for kubeconfig, want := range map[string]string{
		"":        "no --kubeconfig was given, and this is no pod",
		"nowhere": "--kubeconfig nowhere: stat nowhere: no such file or directory",
	} {
		_, err := options(flags{heartbeat: time.Minute, kubeconfig: kubeconfig})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", kubeconfig, err, want)
		}
	}
}
