package lab

import (
	"context"
	"fmt"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

const (
	// systemNamespace is where the charts are installed, on hub and spokes.
	systemNamespace = "cattle-fleet-system"
	// clusterNamespace is where the Cluster objects of the spokes are.
	clusterNamespace = "fleet-default"
	// agentAccount is the identity that the hub makes for each cluster.
	agentAccount = "flotilla-agent"
)

var clusters = schema.GroupVersionResource{Group: "fleet.cattle.io", Version: "v1alpha1", Resource: "clusters"}

// addProducts adds the processes of Flotilla as parts of the lab; what they
// run is known once the charts are installed.
func (l *Lab) addProducts() {
	l.add(HubController, nil)
	for _, spoke := range l.options.Spokes {
		l.add(AgentOf(spoke.Name), nil)
	}
}

// runInstead starts a process in place of a chart's Deployment: with its
// arguments, and with more that override them.
func (l *Lab) runInstead(ctx context.Context, name string, r release, p program) error {
	u, err := l.unit(name)
	if err != nil {
		return err
	}
	p.args = append(append([]string(nil), r.args...), p.args...)
	p.dir, p.pod = l.options.Dir, true
	u.programs = []program{p}
	if err := l.startUnit(ctx, name, name+" started"); err != nil {
		return err
	}
	// Later starts must work while other parts of the lab are stopped.
	u.programs[0].ready = nil
	return nil
}

// agentKubeconfig is what the agent of a spoke uses on the spoke.
func (l *Lab) agentKubeconfig(spoke string) string { return l.path(spoke + "-agent.kubeconfig") }

// hubKubeconfig is what the agent of a spoke uses on the hub.
func (l *Lab) hubKubeconfig(spoke string) string { return l.path(spoke + "-hub.kubeconfig") }

// installHub installs the hub's charts and runs flotilla-hub with the
// identity that they make.
func (l *Lab) installHub(ctx context.Context) error {
	if _, err := l.hub.install(ctx, "flotilla-crd"); err != nil {
		return err
	}
	release, err := l.hub.install(ctx, "flotilla")
	if err != nil {
		return err
	}
	l.step("hub charts installed")
	user := account{namespace: systemNamespace, name: release.serviceAccount}
	if err := l.hub.grantAccount(ctx, l.path(HubController+".kubeconfig"), user); err != nil {
		return err
	}
	return l.runInstead(ctx, HubController, release, program{
		name: "flotilla-hub",
		path: l.options.Programs.Hub,
		args: append([]string{
			"--kubeconfig=" + l.path(HubController+".kubeconfig"),
			"--cache-dir=" + l.path("home", HubController),
			"--metrics-bind-address=0",
		}, l.options.HubArgs...),
	})
}

// installAgent registers a spoke on the hub, installs the agent's chart on
// it and runs the agent.
func (l *Lab) installAgent(ctx context.Context, spoke Spoke) error {
	namespace, err := l.hub.register(ctx, spoke)
	if err != nil {
		return fmt.Errorf("spoke %s was not taken in by flotilla-hub: %w; its log ends with:\n%s",
			spoke.Name, err, tail(l.path(logsDir, "flotilla-hub.log")))
	}
	onHub := account{namespace: namespace, name: agentAccount}
	if err := l.hub.grantAccount(ctx, l.hubKubeconfig(spoke.Name), onHub); err != nil {
		return err
	}
	c := l.spokes[spoke.Name]
	release, err := c.install(ctx, "flotilla-agent")
	if err != nil {
		return err
	}
	onSpoke := account{namespace: systemNamespace, name: release.serviceAccount}
	if err := c.grantAccount(ctx, l.agentKubeconfig(spoke.Name), onSpoke); err != nil {
		return err
	}
	return l.runInstead(ctx, AgentOf(spoke.Name), release, program{
		name: spoke.Name + "-flotilla-agent",
		path: l.options.Programs.Agent,
		args: append([]string{
			"--kubeconfig=" + l.agentKubeconfig(spoke.Name),
			"--hub-kubeconfig=" + l.hubKubeconfig(spoke.Name),
		}, l.options.AgentArgs...),
		ready: func(ctx context.Context) error { return l.hub.heardFrom(ctx, spoke.Name) },
	})
}

// register makes the Cluster object of a spoke and returns the namespace
// that the hub gives it.
func (c *cluster) register(ctx context.Context, spoke Spoke) (string, error) {
	labels := map[string]any{"name": spoke.Name}
	for key, value := range spoke.Labels {
		labels[key] = value
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": clusters.GroupVersion().String(),
		"kind":       "Cluster",
		"metadata":   map[string]any{"name": spoke.Name, "namespace": clusterNamespace, "labels": labels},
		"spec":       map[string]any{},
	}}
	applier, err := c.applier()
	if err != nil {
		return "", err
	}
	if err := applier.apply(ctx, object); err != nil {
		return "", err
	}
	return c.awaitStatus(ctx, spoke.Name, "namespace")
}

// heardFrom waits until the hub knows that the agent of a spoke is alive.
func (c *cluster) heardFrom(ctx context.Context, spoke string) error {
	_, err := c.awaitStatus(ctx, spoke, "agent", "lastSeen")
	return err
}

// awaitStatus waits until a field of a Cluster's status is set.
func (c *cluster) awaitStatus(ctx context.Context, name string, field ...string) (string, error) {
	applier, err := c.applier()
	if err != nil {
		return "", err
	}
	var value string
	err = poll(ctx, time.Minute, func(ctx context.Context) error {
		live, err := applier.client.Resource(clusters).Namespace(clusterNamespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		value, _, _ = unstructured.NestedString(live.Object, append([]string{"status"}, field...)...)
		if value == "" {
			return fmt.Errorf("cluster %s/%s has no status.%s", clusterNamespace, name, strings.Join(field, "."))
		}
		return nil
	})
	return value, err
}

// account is a ServiceAccount.
type account struct{ namespace, name string }

// grantAccount writes a kubeconfig for a ServiceAccount, as soon as it is
// there; its context is in the account's namespace.
func (c *cluster) grantAccount(ctx context.Context, path string, user account) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	var token string
	err = poll(ctx, time.Minute, func(ctx context.Context) error {
		token, err = requestToken(ctx, client, user)
		return err
	})
	if err != nil {
		return fmt.Errorf("no token for ServiceAccount %s/%s on %s: %w", user.namespace, user.name, c.name, err)
	}
	return access{cluster: c.name, server: c.server, ca: c.ca.pem(), token: token, namespace: user.namespace}.write(path)
}

func requestToken(ctx context.Context, client kubernetes.Interface, user account) (string, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: ptr.To(int64(validity.Seconds())),
	}}
	answer, err := client.CoreV1().ServiceAccounts(user.namespace).CreateToken(ctx, user.name, request, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return answer.Status.Token, nil
}
