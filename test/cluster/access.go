// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
)

// KubeconfigPath is the administrator's kubeconfig.
func (c *Cluster) KubeconfigPath() string { return c.path("admin.kubeconfig") }

// ConfigFor authenticates by client certificate as a user who is a member of groups.
// What that user may do is up to RBAC. There is no client-side rate limit.
func (c *Cluster) ConfigFor(user string, groups ...string) (*rest.Config, error) {
	pair, err := c.pki.client(user, groups...)
	if err != nil {
		return nil, err
	}
	config := c.anonymous()
	config.CertData, config.KeyData = pair.certificate, pair.key
	return config, nil
}

// KubeconfigFor writes a kubeconfig that authenticates by client certificate as a
// user who is a member of groups, and returns its path.
func (c *Cluster) KubeconfigFor(user string, groups ...string) (string, error) {
	config, err := c.ConfigFor(user, groups...)
	if err != nil {
		return "", err
	}
	return c.writeKubeconfig(user, config)
}

// ServiceAccountConfig authenticates with a token of a ServiceAccount, which must
// exist. The token outlives every test.
func (c *Cluster) ServiceAccountConfig(ctx context.Context, namespace, name string) (*rest.Config, error) {
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(validity / time.Second))},
	}
	token, err := c.client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("request a token of service account %s/%s: %w", namespace, name, err)
	}
	config := c.anonymous()
	config.BearerToken = token.Status.Token
	return config, nil
}

// ServiceAccountKubeconfig writes a kubeconfig with a token of a ServiceAccount,
// which must exist, and returns its path.
func (c *Cluster) ServiceAccountKubeconfig(ctx context.Context, namespace, name string) (string, error) {
	config, err := c.ServiceAccountConfig(ctx, namespace, name)
	if err != nil {
		return "", err
	}
	return c.writeKubeconfig(namespace+"-"+name, config)
}

// anonymous knows the cluster but has no identity.
func (c *Cluster) anonymous() *rest.Config {
	return &rest.Config{
		Host:            c.URL(),
		TLSClientConfig: rest.TLSClientConfig{CAData: c.pki.ca.certificate},
		QPS:             -1,
	}
}

// kubeconfig is the file form of a configuration.
func kubeconfig(config *rest.Config) clientcmdapi.Config {
	const name = "cluster"
	k := clientcmdapi.NewConfig()
	k.Clusters[name] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	k.AuthInfos[name] = &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData,
		ClientKeyData:         config.KeyData,
		Token:                 config.BearerToken,
	}
	k.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	k.CurrentContext = name
	return *k
}

// writeKubeconfig writes to a new file whose name resembles that of the identity.
func (c *Cluster) writeKubeconfig(identity string, config *rest.Config) (string, error) {
	safe := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return '-' // a colon separates files in $KUBECONFIG, a slash directories
	}, identity)
	f, err := os.CreateTemp(c.Dir(), safe+"-*.kubeconfig")
	if err != nil {
		return "", err
	}
	if err := f.Close(); err != nil {
		return "", err
	}
	return f.Name(), clientcmd.WriteToFile(kubeconfig(config), f.Name())
}

// KubectlPath is a kubectl of the cluster's version.
func (c *Cluster) KubectlPath() string { return filepath.Join(c.binaries, "kubectl") }

// Kubectl runs kubectl as administrator and returns its standard output.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, c.KubectlPath(), args...)
	cmd.Env = []string{"KUBECONFIG=" + c.KubeconfigPath(), "HOME=" + c.Dir()}
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String(), nil
}
