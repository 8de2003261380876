package lab

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
)

// startLimit is generous, because labs start on machines that are busy.
const startLimit = 2 * time.Minute

// hubControllers are what a cluster needs that runs no pods.
var hubControllers = []string{
	"clusterrole-aggregation-controller", "garbage-collector-controller", "namespace-controller",
	"resourcequota-controller", "root-ca-certificate-publisher-controller",
	"serviceaccount-controller", "serviceaccount-token-controller",
	"validatingadmissionpolicy-status-controller",
}

// workloadControllers are what spokes have besides. There is none that looks
// after nodes: it would evict the pods of a spoke that was stopped for a while.
var workloadControllers = []string{
	"cronjob-controller", "daemonset-controller", "deployment-controller", "disruption-controller",
	"endpoints-controller", "endpointslice-controller", "horizontal-pod-autoscaler-controller",
	"job-controller", "persistentvolumeclaim-protection-controller", "pod-garbage-collector-controller",
	"replicaset-controller", "replicationcontroller-controller", "statefulset-controller",
	"ttl-after-finished-controller",
}

// etcdSocket is the name of the socket at which etcd takes its clients.
const etcdSocket = "client:0"

// cluster is a Kubernetes control plane of the lab.
type cluster struct {
	name       string
	binaries   string
	dir        string
	server     string
	port       string
	kubeconfig string
	kwokLog    string
	ca         *authority
	// serverArgs override arguments of the API server.
	serverArgs []string
}

// newCluster prepares the files of a cluster.
func (l *Lab) newCluster(name string) (*cluster, error) {
	port, err := l.ports.take()
	if err != nil {
		return nil, err
	}
	c := &cluster{
		name:       name,
		binaries:   l.path("bin"),
		dir:        l.path("clusters", name),
		server:     "https://" + net.JoinHostPort("127.0.0.1", port),
		port:       port,
		kubeconfig: l.path(name + ".kubeconfig"),
		kwokLog:    l.path(logsDir, name+"-kwok.log"),
		serverArgs: l.options.APIServerArgs,
	}
	if c.ca, err = newAuthority(filepath.Join(c.dir, "pki"), name); err != nil {
		return nil, err
	}
	if err := c.ca.server(); err != nil {
		return nil, err
	}
	if err := c.grant(c.kubeconfig, "lab-admin", "system:masters"); err != nil {
		return nil, err
	}
	if err := c.grant(c.own("controller-manager.kubeconfig"), "system:kube-controller-manager", "system:masters"); err != nil {
		return nil, err
	}
	return c, os.WriteFile(c.own("stages.yaml"), stages, 0o600)
}

// grant writes a kubeconfig for a user with a certificate.
func (c *cluster) grant(path, user, group string) error {
	pair, err := c.ca.client(user, group)
	if err != nil {
		return err
	}
	return access{cluster: c.name, server: c.server, ca: c.ca.pem(), client: pair}.write(path)
}

func (c *cluster) own(file string) string { return filepath.Join(c.dir, file) }

func (c *cluster) status(labels map[string]string) ClusterStatus {
	return ClusterStatus{Name: c.name, Labels: labels, Kubeconfig: c.kubeconfig, Server: c.server, Dir: c.dir}
}

// hubPrograms are the processes of a cluster that runs no pods.
func (c *cluster) hubPrograms() []program {
	return []program{c.etcd(), c.apiServer(), c.controllerManager(hubControllers)}
}

// spokePrograms are the processes of a cluster whose pods become Ready.
func (c *cluster) spokePrograms() []program {
	controllers := append(append([]string(nil), hubControllers...), workloadControllers...)
	return []program{
		c.etcd(), c.apiServer(), c.controllerManager(controllers),
		c.run("kube-scheduler",
			"--kubeconfig="+c.own("controller-manager.kubeconfig"),
			"--leader-elect=false",
			"--secure-port=0"),
		c.run("kwok",
			"--kubeconfig="+c.own("controller-manager.kubeconfig"),
			"--config="+c.own("stages.yaml"),
			"--manage-all-nodes",
			"--node-lease-duration-seconds=0"),
	}
}

func (c *cluster) run(name string, args ...string) program {
	return program{name: c.name + "-" + name, path: filepath.Join(c.binaries, name), args: args, dir: c.dir}
}

// etcd listens on sockets in the cluster's directory, where no other user
// gets at it and no port is needed. It does not wait for the disk: the data
// is as lasting as the machine is up.
func (c *cluster) etcd() program {
	p := c.run("etcd",
		"--name=lab",
		"--data-dir=etcd",
		"--listen-client-urls=unix://client:0",
		"--advertise-client-urls=unix://client:0",
		"--listen-peer-urls=unix://peer:0",
		"--initial-advertise-peer-urls=unix://peer:0",
		"--initial-cluster=lab=unix://peer:0",
		"--unsafe-no-fsync",
		"--log-level=warn")
	p.ready = func(ctx context.Context) error {
		return poll(ctx, startLimit, func(ctx context.Context) error {
			return dialSocket(ctx, c.dir, etcdSocket)
		})
	}
	return p
}

func (c *cluster) apiServer() program {
	pki := filepath.Join(c.dir, "pki")
	p := c.run("kube-apiserver",
		"--etcd-servers=unix://client:0",
		"--bind-address=127.0.0.1",
		"--secure-port="+c.port,
		"--tls-cert-file="+filepath.Join(pki, "apiserver.crt"),
		"--tls-private-key-file="+filepath.Join(pki, "apiserver.key"),
		"--client-ca-file="+filepath.Join(pki, "ca.crt"),
		"--anonymous-auth=false",
		// It taints new nodes until a controller that the lab does not run
		// has seen them.
		"--disable-admission-plugins=TaintNodesByCondition",
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+filepath.Join(pki, "sa.key"),
		"--service-account-signing-key-file="+filepath.Join(pki, "sa.key"),
		"--service-cluster-ip-range="+serviceRange,
		"--allow-privileged=true",
		"--endpoint-reconciler-type=none",
		"--profiling=false",
		"--event-ttl=2h")
	p.args = append(p.args, c.serverArgs...)
	p.ready = func(ctx context.Context) error { return poll(ctx, startLimit, c.healthy) }
	return p
}

func (c *cluster) controllerManager(controllers []string) program {
	pki := filepath.Join(c.dir, "pki")
	return c.run("kube-controller-manager",
		"--kubeconfig="+c.own("controller-manager.kubeconfig"),
		"--controllers="+strings.Join(controllers, ","),
		"--service-account-private-key-file="+filepath.Join(pki, "sa.key"),
		"--root-ca-file="+filepath.Join(pki, "ca.crt"),
		"--leader-elect=false",
		"--secure-port=0",
		// It has two objects to make in each namespace, and would be at it long
		// after a large fleet is registered.
		"--kube-api-qps=1000",
		"--kube-api-burst=2000",
		"--profiling=false")
}

// healthy asks the API server whether it is ready.
func (c *cluster) healthy(ctx context.Context) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	_, err = client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
	return err
}

func (c *cluster) client() (*kubernetes.Clientset, error) {
	config, err := clientConfig(c.kubeconfig)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// DialEtcd connects to the etcd of a cluster.
func (s ClusterStatus) DialEtcd(ctx context.Context) (conn net.Conn, err error) {
	err = inDir(s.Dir, func(short string) error {
		conn, err = (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(short, etcdSocket))
		return err
	})
	return conn, err
}

func dialSocket(ctx context.Context, dir, name string) error {
	return inDir(dir, func(short string) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", short+"/"+name)
		if err != nil {
			return fmt.Errorf("cannot reach %s: %w", filepath.Join(dir, name), err)
		}
		return conn.Close()
	})
}
