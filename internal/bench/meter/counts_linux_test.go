package meter

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const auditLines = `{"stage":"ResponseComplete","verb":"create","userAgent":"flotilla-hub","objectRef":{"resource":"bundledeployments"},"responseStatus":{"code":201}}
{"stage":"ResponseComplete","verb":"create","userAgent":"flotilla-hub","objectRef":{"resource":"contents"},"responseStatus":{"code":409}}
{"stage":"ResponseStarted","verb":"watch","userAgent":"flotilla-agent","objectRef":{"resource":"bundledeployments"},"responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"watch","userAgent":"flotilla-agent","objectRef":{"resource":"bundledeployments"},"responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"patch","userAgent":"flotilla-agent","objectRef":{"resource":"bundledeployments","subresource":"status"},"responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"patch","userAgent":"flotilla-agent","objectRef":{"resource":"leases"},"responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"update","userAgent":"kube-apiserver/v1.36.3 (linux/amd64)","objectRef":{"resource":"leases"},"responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"get","userAgent":"curl/8","requestURI":"/version","responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"get","userAg`

func TestCounts(t *testing.T) {
	log := auditLog{path: filepath.Join(t.TempDir(), AuditLog)}
	if err := os.WriteFile(log.path, []byte(auditLines), 0o600); err != nil {
		t.Fatal(err)
	}
	counts := Counts{}
	first := int64(strings.Index(auditLines, "\n") + 1)
	for _, part := range [][2]int64{{0, first}, {first, int64(len(auditLines))}} {
		if err := log.read(part[0], part[1], func(_ *entry, r Request) { counts[r]++ }); err != nil {
			t.Fatal(err)
		}
	}
	want := Counts{
		{"flotilla-hub", "create", "bundledeployments", true}:         1,
		{"flotilla-hub", "create", "contents", false}:                 1,
		{"flotilla-agent", "watch", "bundledeployments", true}:        1,
		{"flotilla-agent", "patch", "bundledeployments/status", true}: 1,
		{"flotilla-agent", "patch", "leases", true}:                   1,
		{"kube-apiserver", "update", "leases", true}:                  1,
	}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Error(diff)
	}
	if n := counts.Sum(Request.Work); n != 3 {
		t.Errorf("%d requests are work: the watch and the leases are not", n)
	}
	use := Use{Requests: counts, Etcd: EtcdUse{Puts: 4}}
	if puts := use.PutsOfWork(); puts != 2 {
		t.Errorf("%v puts are work: those of the leases are not", puts)
	}
}

func TestDisagree(t *testing.T) {
	counts := Counts{{"a", "get", "pods", true}: 2, {"b", "get", "pods", false}: 1, {"a", "watch", "pods", true}: 9}
	before, after := served{{"get", "pods"}: 5}, served{{"get", "pods"}: 8, {"list", "nodes"}: 0}
	if n := disagree(counts, before, after); n != 0 {
		t.Errorf("they agree, and differ by %d", n)
	}
	after[[2]string{"list", "nodes"}] = 2
	if n := disagree(counts, before, after); n != 2 {
		t.Errorf("they differ by 2 lists, not %d", n)
	}
}

func TestParseStat(t *testing.T) {
	got := parseStat("42 (a (b) c) S 7 1 1 0 -1 4194560 1 2 3 4 100 20 5 6 20 0 9 0 12345")
	if got.parent != 7 || got.cpu != 131*tick {
		t.Errorf("got %+v", got)
	}
}
