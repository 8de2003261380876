// Package names makes every name that is derived from another: bundles, Helm
// releases, cluster namespaces, labels and field managers. Names are pure
// functions of their inputs and agree with those of Rancher Fleet, so that a
// migrated installation keeps its objects.
package names

import (
	"crypto/md5" //nolint:gosec // names are not secrets; the algorithm is part of the naming scheme users know
	"encoding/hex"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/flotilla-sh/flotilla/internal/digest"
)

const (
	// maxRelease is Helm's limit for release names.
	maxRelease = 53
	// maxObject is the longest name that fits a label and a namespace.
	maxObject = 63
	// maxManager is the API server's limit for field managers.
	maxManager = 128

	managerPrefix = "flotilla-"
)

// Read-only once compiled.
var (
	plainName  = regexp.MustCompile(`^[a-z0-9-]*$`)
	disallowed = regexp.MustCompile(`[^a-z0-9-]+`)
	dashes     = regexp.MustCompile(`--+`)
	dnsLabel   = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
)

// Bundle returns the name of the bundle that lies at dir in the repository
// repo. optionsFile is the file that a driven scan reads in place of
// fleet.yaml, relative to dir, or empty.
func Bundle(repo, dir, optionsFile string) string {
	options := strings.TrimSuffix(optionsFile, path.Ext(optionsFile))
	return helmRelease(path.Join(repo, dir, options))
}

// helmRelease turns any text into a name that Helm takes for a release. Text
// that must be changed gets a hash, so that two texts never share a name only
// because their differences were removed.
func helmRelease(text string) string {
	name := strings.ReplaceAll(text, "/", "-")
	if !plainName.MatchString(name) {
		name += "-" + md5Hex(name, 8)
	}
	name = disallowed.ReplaceAllString(strings.ToLower(name), "-")
	name = strings.Trim(dashes.ReplaceAllString(name, "-"), "-")
	if !dnsLabel.MatchString(name) {
		return md5Hex(text, 24)
	}
	return Limit(name, maxRelease)
}

// Limit shortens text to at most n bytes. What is cut off is replaced by a
// short hash of the whole where there is room for one.
func Limit(text string, n int) string {
	const hash = 5
	if len(text) <= n {
		return text
	}
	if n <= hash+1 {
		return text[:max(n, 0)]
	}
	head := text[:n-hash-1]
	if !strings.HasSuffix(head, "-") {
		head += "-"
	}
	return head + md5Hex(text, hash)
}

// SafeConcat joins parts with dashes to a name of at most 63 bytes; a longer
// one is cut and ends in a hash of the whole.
func SafeConcat(parts ...string) string {
	name := strings.Join(parts, "-")
	if len(name) <= maxObject {
		return name
	}
	sum := digest.OfBytes([]byte(name))
	const cut = maxObject - 6
	if last := name[cut-1]; last >= 'a' && last <= 'z' || last >= '0' && last <= '9' {
		return name[:cut] + "-" + sum[:5]
	}
	return name[:cut-1] + "-" + sum[:6]
}

// KeyHash returns a short hash of the first 100 bytes of text.
func KeyHash(text string) string {
	return digest.OfBytes([]byte(text[:min(len(text), 100)]))[:12]
}

// ClusterNamespace returns the namespace on the hub that holds the deployments
// of the Cluster name in namespace.
func ClusterNamespace(namespace, name string) string {
	return SafeConcat("cluster", namespace, name, KeyHash(namespace+"::"+name))
}

// DeploymentLabel returns the value of the label that every object of a bundle
// carries on a cluster: 16 hex digits, whatever the length of the names.
func DeploymentLabel(bundleNamespace, bundleName string) string {
	return digest.Of([]byte(bundleNamespace), []byte(bundleName))[:16]
}

// Hub returns the identity of the hub with this key. It moves with the key when
// a hub is restored on another cluster, and does not tell the key.
func Hub(key []byte) string {
	return digest.Of([]byte("hub identity"), key)[:16]
}

// FieldManager returns the field manager that applies the objects of a bundle.
// It is readable, since people meet it in managedFields; names too long for a
// field manager end in a hash behind a tilde, which no object name contains.
func FieldManager(bundleNamespace, bundleName string) string {
	manager := managerPrefix + bundleNamespace + "/" + bundleName
	if len(manager) <= maxManager {
		return manager
	}
	hash := "~" + DeploymentLabel(bundleNamespace, bundleName)
	return manager[:maxManager-len(hash)] + hash
}

func md5Hex(text string, n int) string {
	sum := md5.Sum([]byte(text)) //nolint:gosec // see the import
	return hex.EncodeToString(sum[:])[:n]
}

// ValuesSecret is the name of the Secret that holds a bundle's Helm values with
// this digest.
func ValuesSecret(bundle, hash string) string {
	return Limit(bundle, 40) + "-values-" + hash[:min(10, len(hash))]
}

// ValuesKey is the key in that Secret for the values of the target with this
// index, or of the bundle itself for -1.
func ValuesKey(target int) string {
	if target < 0 {
		return "values.yaml"
	}
	return fmt.Sprintf("target%03d.yaml", target)
}
