package lab

import (
	"context"
	_ "embed"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// stages tell kwok how nodes and pods live.
//
//go:embed stages.yaml
var stages []byte

// join gives a spoke its one node and waits until pods can run on it.
func (c *cluster) join(ctx context.Context) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Nodes().Create(ctx, node(c.name), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	err = poll(ctx, startLimit, func(ctx context.Context) error {
		found, err := client.CoreV1().Nodes().Get(ctx, nodeName(c.name), metav1.GetOptions{})
		if err != nil {
			return err
		}
		return nodeReady(found)
	})
	if err != nil {
		return fmt.Errorf("spoke %s: %w; see the log of its kwok:\n%s", c.name, err, tail(c.kwokLog))
	}
	return nil
}

func nodeReady(node *corev1.Node) error {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("node %s is not Ready", node.Name)
}

func nodeName(cluster string) string { return cluster + "-node" }

// node is a machine that is large enough for whatever a test deploys.
func node(cluster string) *corev1.Node {
	size := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("64"),
		corev1.ResourceMemory:           resource.MustParse("512Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("4Ti"),
		corev1.ResourcePods:             resource.MustParse("2000"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: nodeName(cluster),
			Labels: map[string]string{
				corev1.LabelHostname:   nodeName(cluster),
				corev1.LabelOSStable:   "linux",
				corev1.LabelArchStable: "amd64",
			},
		},
		Status: corev1.NodeStatus{Capacity: size, Allocatable: size},
	}
}
