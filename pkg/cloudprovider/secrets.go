// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/oracle/oci-cloud-controller-manager/pkg/config"
	"github.com/oracle/oci-cloud-controller-manager/pkg/loadbalancer"
)

const (
	// secretDeadline bounds one read of a Secret.
	secretDeadline = 10 * time.Second

	// secretChangeDelay gathers the writes by which a certificate is renewed.
	secretChangeDelay = time.Second

	// maxWatchedSecrets bounds the watches: each is a stream on the connection to the API server. Others are polled.
	maxWatchedSecrets = 100

	// A watch ends after this time, and is begun anew, so that API servers share the load (as client-go's reflectors do).
	secretWatchPeriod = 8 * time.Minute
	// secretWatchPause is the pause before a watch is begun anew that failed.
	secretWatchPause = 5 * time.Second
)

// Versions of Secrets that cannot be read.
const (
	secretMissing   = "missing"
	secretForbidden = "forbidden"
)

// secrets reads the Secrets with certificates that Services name, and queues the Services when one changes. Nothing of their
// content is kept: a Secret is known by its resource version. Those in use are watched one by one where that is allowed,
// else polled; there is no cache of all Secrets of the cluster, and no permission to list them is needed.
type secrets struct {
	client   kubernetes.Interface
	provider *Provider
	period   time.Duration

	mu       sync.Mutex
	inUse    map[types.NamespacedName]*secretInUse
	services *watchServices // nil until run
	watches  int
	noticed  bool // that watches are not allowed
}

// secretInUse is guarded by the lock of secrets.
type secretInUse struct {
	version string // as it was seen last
	polled  bool
	stop    context.CancelFunc
}

func newSecrets(client kubernetes.Interface, p *Provider) *secrets {
	return &secrets{client: client, provider: p, period: p.options.SecretPoll, inUse: map[types.NamespacedName]*secretInUse{}}
}

// Secret reads a Secret with a certificate. From then on its changes are noticed.
func (s *ServiceSupport) Secret(ctx context.Context, name types.NamespacedName) (loadbalancer.TLSSecret, error) {
	secret, err := s.secrets.read(ctx, name)
	if err != nil {
		return loadbalancer.TLSSecret{}, err
	}
	return loadbalancer.TLSSecret{
		Certificate: string(secret.Data[loadbalancer.SecretKeyCertificate]),
		Key:         config.Secret(secret.Data[loadbalancer.SecretKeyPrivateKey]),
		CA:          string(secret.Data[loadbalancer.SecretKeyCA]),
		Passphrase:  config.Secret(secret.Data[loadbalancer.SecretKeyPassphrase]),
	}, nil
}

// read reads a Secret and notes which version was seen.
func (s *secrets) read(ctx context.Context, name types.NamespacedName) (*v1.Secret, error) {
	ctx, cancel := context.WithTimeout(ctx, secretDeadline)
	defer cancel()
	secret, err := s.client.CoreV1().Secrets(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	var version string
	switch {
	case err == nil:
		version = secret.ResourceVersion
	case apierrors.IsNotFound(err):
		version = secretMissing
	case apierrors.IsForbidden(err):
		version = secretForbidden
	default:
		return nil, err
	}
	s.seen(name, version) //nolint:contextcheck // what follows the Secret outlives this read
	return secret, err
}

// seen notes the version of a Secret. If it is another one than before, all Services that use it are queued: which of them
// have read which version, nobody knows.
func (s *secrets) seen(name types.NamespacedName, version string) {
	s.mu.Lock()
	u := s.inUse[name]
	changed := u != nil && u.version != version
	switch {
	case u == nil:
		u = &secretInUse{}
		s.inUse[name] = u
		s.begin(name, u)
	case changed && u.polled && u.version == secretForbidden:
		s.begin(name, u) // who may read it now may perhaps watch it
	}
	u.version = version
	services := s.services
	s.mu.Unlock()
	if changed && services != nil {
		klog.FromContext(s.provider.context).Info("The Secret of a certificate has changed", "secret", name)
		services.queueUsers(name)
	}
}

// begin follows a Secret. s.mu is held.
func (s *secrets) begin(name types.NamespacedName, u *secretInUse) {
	ctx, stop := context.WithCancel(s.provider.context)
	u.stop, u.polled = stop, false
	go s.follow(ctx, name)
}

// queueUsers queues the Services whose balancers need a Secret.
func (w *watchServices) queueUsers(name types.NamespacedName) {
	for _, service := range w.wanting() {
		for _, used := range loadbalancer.SecretsOf(service) {
			if used == name {
				w.queue.add(keyOf(service), queuedBySecret, secretChangeDelay)
			}
		}
	}
}

// run polls until ctx ends.
func (s *secrets) run(ctx context.Context, services *watchServices) {
	if !cache.WaitForCacheSync(ctx.Done(), services.synced...) {
		return
	}
	s.mu.Lock()
	s.services = services
	s.mu.Unlock()
	for {
		select {
		case <-time.After(s.period):
			s.poll(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// poll lets go of Secrets that no Service names any more, and looks at those that are not watched.
func (s *secrets) poll(ctx context.Context) {
	named := map[types.NamespacedName]bool{}
	for _, service := range s.services.wanting() {
		for _, name := range loadbalancer.SecretsOf(service) {
			named[name] = true
		}
	}
	var polled []types.NamespacedName
	s.mu.Lock()
	for name, u := range s.inUse {
		switch {
		case !named[name]:
			u.stop()
			delete(s.inUse, name)
		case u.polled:
			polled = append(polled, name)
		}
	}
	s.mu.Unlock()
	for _, name := range polled {
		if _, err := s.read(ctx, name); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
			klog.FromContext(ctx).Error(err, "Could not look at a Secret; it is looked at again", "secret", name)
		}
	}
}

// follow watches a Secret if that is allowed, and leaves it to poll otherwise.
func (s *secrets) follow(ctx context.Context, name types.NamespacedName) {
	rule := Permission{Verb: "watch", Resource: "secrets", Namespace: name.Namespace, Name: name.Name}
	allowed, err := rule.Allowed(ctx, s.client)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Could not check a permission; the Secret is polled", "secret", name)
	}
	if allowed && s.mayWatch() {
		defer s.endWatch()
		for ctx.Err() == nil {
			err := s.watch(ctx, name)
			if apierrors.IsForbidden(err) {
				allowed = false
				break
			}
			if err != nil {
				klog.FromContext(ctx).V(2).Info("The watch of a Secret ended", "secret", name, "err", err)
			}
			sleepFor(ctx, wait.Jitter(secretWatchPause, 1))
		}
	}
	s.mu.Lock()
	if u := s.inUse[name]; u != nil && ctx.Err() == nil {
		u.polled = true
	}
	first := !allowed && err == nil && !s.noticed && ctx.Err() == nil
	s.noticed = s.noticed || first
	s.mu.Unlock()
	if first {
		rule.Name = ""
		s.provider.notice(rule.missing("noticing at once that the Secret of a certificate has changed; it is looked at every " + s.period.String() + " instead"))
	}
}

func (s *secrets) mayWatch() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watches >= maxWatchedSecrets {
		return false
	}
	s.watches++
	return true
}

func (s *secrets) endWatch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watches--
}

// watch watches one Secret for a while. Its name in the field selector is what a rule with resourceNames allows. A watch
// without a version begins with the Secret as it is, if it exists.
func (s *secrets) watch(ctx context.Context, name types.NamespacedName) error {
	if _, err := s.read(ctx, name); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	seconds := int64(wait.Jitter(secretWatchPeriod, 0.5) / time.Second)
	w, err := s.client.CoreV1().Secrets(name.Namespace).Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name.Name).String(), TimeoutSeconds: &seconds,
	})
	if err != nil {
		return err
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, open := <-w.ResultChan():
			if !open {
				return nil
			}
			if event.Type == watch.Error {
				return apierrors.FromObject(event.Object)
			}
			if secret, ok := event.Object.(*v1.Secret); ok && secret.Name == name.Name && event.Type != watch.Bookmark {
				version := secret.ResourceVersion
				if event.Type == watch.Deleted {
					version = secretMissing
				}
				s.seen(name, version) //nolint:contextcheck // as in read
			}
		}
	}
}

// sleepFor waits for d or for the end of ctx.
func sleepFor(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
