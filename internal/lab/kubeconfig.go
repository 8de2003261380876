package lab

import (
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// access is all that a kubeconfig tells.
type access struct {
	cluster   string
	server    string
	ca        []byte
	client    keyPair
	token     string
	namespace string
}

// write stores a kubeconfig; its one context is named after the cluster.
func (a access) write(path string) error {
	config := clientcmdapi.NewConfig()
	config.Clusters[a.cluster] = &clientcmdapi.Cluster{Server: a.server, CertificateAuthorityData: a.ca}
	config.AuthInfos[a.cluster] = &clientcmdapi.AuthInfo{
		ClientCertificateData: a.client.cert,
		ClientKeyData:         a.client.key,
		Token:                 a.token,
	}
	config.Contexts[a.cluster] = &clientcmdapi.Context{Cluster: a.cluster, AuthInfo: a.cluster, Namespace: a.namespace}
	config.CurrentContext = a.cluster
	return clientcmd.WriteToFile(*config, path)
}

// clientConfig returns what clients need to talk to the API server that a
// kubeconfig names, without a limit on their rate.
func clientConfig(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.UserAgent = "flotilla-lab"
	return config, nil
}
