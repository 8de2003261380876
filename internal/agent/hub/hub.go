// Package hub is the agent's only door to the hub: its mailbox namespace, the
// contents that its deployments name, and what it reports.
package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// metadataOnly asks for the metadata alone in the answer to a write.
const metadataOnly = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"

// Client talks to the hub for one cluster.
type Client struct {
	rest *rest.RESTClient
	// core reads payloads, in protobuf.
	core      *typedcorev1.CoreV1Client
	codec     runtime.ParameterCodec
	namespace string

	mu sync.Mutex
	// lease is what the agent's Lease says of its hub.
	lease *metav1.PartialObjectMetadata
	// beaten is the Lease as it was read first, or written last.
	beaten metav1.ObjectMeta
	// lost gets a word when the hub has lost what it knew.
	lost chan struct{}
}

// NewClient returns a client for the cluster namespace of the hub.
func NewClient(config *rest.Config, namespace string) (*Client, error) {
	scheme := runtime.NewScheme()
	if err := fleet.AddToScheme(scheme); err != nil {
		return nil, err
	}
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	c := rest.CopyConfig(config)
	c.GroupVersion, c.APIPath = &fleet.SchemeGroupVersion, "/apis"
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	c.ContentType, c.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	// Payloads are compressed already; compressing them again costs the hub
	// more than the link gains.
	c.DisableCompression = true
	client, err := rest.RESTClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("connect to the hub: %w", err)
	}
	c = rest.CopyConfig(c)
	c.ContentType, c.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf
	core, err := typedcorev1.NewForConfigAndClient(c, client.Client)
	if err != nil {
		return nil, fmt.Errorf("connect to the hub: %w", err)
	}
	return &Client{rest: client, core: core, codec: runtime.NewParameterCodec(scheme), namespace: namespace, lost: make(chan struct{}, 1)}, nil
}

// Namespace is the cluster namespace on the hub.
func (c *Client) Namespace() string { return c.namespace }

// Get reads one deployment as it is now.
func (c *Client) Get(ctx context.Context, name string) (*fleet.BundleDeployment, error) {
	bd := &fleet.BundleDeployment{}
	err := c.rest.Get().Namespace(c.namespace).Resource("bundledeployments").Name(name).Do(ctx).Into(bd)
	return bd, err
}

// PatchStatus merges patch into the status of a deployment and returns the
// resource version that this made.
func (c *Client) PatchStatus(ctx context.Context, name string, patch []byte) (metav1.ObjectMeta, error) {
	return metaOf(c.rest.Patch(types.MergePatchType).Namespace(c.namespace).Resource("bundledeployments").Name(name).
		SubResource("status").SetHeader("Accept", metadataOnly).Body(patch).Do(ctx).Raw())
}

// metaOf reads the metadata in an answer.
func metaOf(raw []byte, err error) (metav1.ObjectMeta, error) {
	if err != nil {
		return metav1.ObjectMeta{}, err
	}
	var meta metav1.PartialObjectMetadata
	if err := json.Unmarshal(raw, &meta); err != nil {
		return metav1.ObjectMeta{}, fmt.Errorf("the hub's answer is no object: %w", err)
	}
	return meta.ObjectMeta, nil
}

// PatchLease merges patch into the agent's Lease. It returns what that says of the
// agent, and whether the hub has lost the one that was known: this is another
// one, or an earlier state of it, as after a restored backup.
func (c *Client) PatchLease(ctx context.Context, patch []byte) (string, bool, error) {
	now, err := metaOf(c.rest.Patch(types.MergePatchType).AbsPath("/apis/coordination.k8s.io/v1/namespaces", c.namespace, "leases", fleet.AgentName).
		SetHeader("Accept", metadataOnly).Body(patch).Do(ctx).Raw())
	if err != nil {
		return "", false, err
	}
	says := now.Annotations[fleet.AgentReportAnnotation]
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.beaten
	c.beaten = now
	if !lost(before, now) {
		return says, false, nil
	}
	c.lease = nil
	select {
	case c.lost <- struct{}{}:
	default: // it is known already
	}
	return says, true, nil
}

// lost tells whether the state of a Lease does not follow from another one.
func lost(before, now metav1.ObjectMeta) bool {
	if before.UID == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(now.ResourceVersion, before.ResourceVersion)
	return now.UID != before.UID || err == nil && order < 0
}

// PatchCapabilities merges patch into the ConfigMap of what the cluster serves.
func (c *Client) PatchCapabilities(ctx context.Context, patch []byte) error {
	return c.merge(ctx, "/api/v1/namespaces/"+c.namespace+"/configmaps/"+fleet.CapabilitiesName, patch)
}

// ReportedAPIs returns the kinds of the last report, one a line: those of the
// ConfigMap of what the cluster serves.
func (c *Client) ReportedAPIs(ctx context.Context) (string, error) {
	reported, err := c.core.ConfigMaps(c.namespace).Get(ctx, fleet.CapabilitiesName, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	return reported.Data[fleet.CapabilitiesAPIsKey], nil
}

// Meet sees to it that the agent's Lease has been read, so that one that is made
// anew later is told from it.
func (c *Client) Meet(ctx context.Context) error {
	_, err := c.readLease(ctx)
	return err
}

// Identity returns the identity of the hub, which stands on the agent's Lease;
// a hub that has none yet returns nothing.
func (c *Client) Identity(ctx context.Context) (string, error) {
	lease, err := c.readLease(ctx)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("ask the hub who it is: %w", err)
	}
	return lease.Annotations[fleet.HubAnnotation], nil
}

// readLease reads the metadata of the agent's Lease once.
func (c *Client) readLease(ctx context.Context) (*metav1.PartialObjectMetadata, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lease != nil {
		return c.lease, nil
	}
	raw, err := c.rest.Get().AbsPath("/apis/coordination.k8s.io/v1/namespaces", c.namespace, "leases", fleet.AgentName).
		SetHeader("Accept", metadataOnly).Do(ctx).Raw()
	if err != nil {
		return nil, err
	}
	lease := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(raw, lease); err != nil {
		return nil, fmt.Errorf("the hub's answer is no object: %w", err)
	}
	if marked(lease, fleet.ClusterLabel) != "" {
		c.lease = lease
	}
	if c.beaten.UID == "" {
		c.beaten = lease.ObjectMeta
	}
	return lease, nil
}

// marked reads an annotation, or the label of that name, which has no room for
// long names.
func marked(o *metav1.PartialObjectMetadata, key string) string {
	return cmp.Or(o.Annotations[key], o.Labels[key])
}

func (c *Client) merge(ctx context.Context, path string, patch []byte) error {
	return c.rest.Patch(types.MergePatchType).AbsPath(path).SetHeader("Accept", metadataOnly).Body(patch).Do(ctx).Error()
}
