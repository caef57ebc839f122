// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/server"
)

// serveFlags are the flags of "ocisim serve".
type serveFlags struct {
	seed      string
	users     []string
	instances []string // ADDRESS=INSTANCE
	verbosity int
	region    regionFlags
	traffic   trafficFlags
	attach    attachmentFlags
	server    server.Options
}

func serveCommand() *cobra.Command {
	f := &serveFlags{}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the simulated region until interrupted",
		Long: `Run the simulated region until interrupted, and print how to point a program at it.

The CA and the API keys of users are kept in --dir, so that a program that was set up once works again after a restart.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serve(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.seed, "seed", "", "YAML file with the world to start from; empty region without it")
	flags.StringSliceVar(&f.users, "user", []string{"demo"}, "users to make, each with an API key and an OCI config file")
	flags.StringSliceVar(&f.instances, "instance-metadata", nil,
		"ADDRESS=INSTANCE: one more metadata listener that answers for an instance (OCID or display name)")
	flags.IntVarP(&f.verbosity, "verbosity", "v", 0, "log level: 1 tells of refused and dropped connections, 2 of every call")

	s := &f.server
	flags.StringVar(&s.Addr, "listen", "127.0.0.1:18443", "TLS listener for all services")
	flags.StringVar(&s.Proxy, "proxy", "127.0.0.1:3128", "forward proxy, for HTTPS_PROXY and HTTP_PROXY")
	flags.StringVar(&s.Metadata, "metadata", "127.0.0.1:18081", "instance metadata service")
	flags.StringVar(&s.Admin, "admin", defaultAdmin, "admin API; loopback only")
	flags.StringVar(&s.Proxymux, "proxymux", "", "OKE workload identity service; programs look for it on port 12250 of KUBERNETES_SERVICE_HOST (off if empty)")
	flags.StringVar(&s.Advertise, "advertise", "", "host to print for listeners on all interfaces; 127.0.0.1 if empty")
	flags.StringVar(&s.Dir, "dir", defaultDir(), "directory for the CA and the users' keys; a temporary one if empty")
	flags.StringVar(&s.Instance, "instance", "", "instance (OCID or display name) that callers of the metadata service run on; the first of the world if empty")
	flags.StringSliceVar(&s.Domains, "domain", nil, "more second-level domains that the proxy takes over")
	flags.BoolVar(&s.PassLoopback, "pass-loopback", false, "let the proxy tunnel to loopback addresses, for programs that ignore NO_PROXY")
	flags.DurationVar(&s.TokenLife, "token-life", time.Hour, "life of security tokens")
	flags.StringVar(&s.Cluster, "cluster", "", "OCID of the cluster in workload identity tokens")
	flags.BoolVar(&s.BasicCluster, "basic-cluster", false, "refuse workload identity, as a basic OKE cluster does")

	flags.StringVar(&s.RealmDomain, "realm-domain", "", "second-level domain of the realm; that of the real realm if empty")
	f.region.add(flags)
	f.traffic.add(flags)
	f.attach.add(flags)
	return cmd
}

// defaultDir is ocisim's directory among the user's caches; without one the state is temporary.
func defaultDir() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "ocisim")
}

func serve(ctx context.Context, out, errs io.Writer, f *serveFlags) error {
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(f.verbosity), textlogger.Output(errs)))
	ctx = klog.NewContext(ctx, logger)
	options, err := f.region.options()
	if err != nil {
		return err
	}
	body, err := f.traffic.body(logger)
	if err != nil {
		return err
	}
	if body != nil {
		options.Balancers = body
	}
	if options.Attachments, err = f.attach.body(); err != nil {
		return err
	}
	region := ocisim.New(options)
	defer func() { _ = region.Close() }() // the process ends
	if f.seed != "" {
		if err := seed(region, f.seed); err != nil {
			return err
		}
	}
	f.server.Region = region
	s, err := server.Start(ctx, f.server)
	if err != nil {
		return err
	}
	defer s.Close()
	users, err := makeUsers(s, f.users)
	if err != nil {
		return err
	}
	metadata, err := serveInstances(s, f.instances)
	if err != nil {
		return err
	}
	if err := printHelp(out, s, users, metadata); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func seed(region *ocisim.Region, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the seed: %w", err)
	}
	world, err := server.ParseWorld(text)
	if err != nil {
		return fmt.Errorf("seed %s: %w", path, err)
	}
	if err := region.Seed(world); err != nil {
		return fmt.Errorf("seed %s: %w", path, err)
	}
	return nil
}

func makeUsers(s *server.Server, names []string) ([]*server.User, error) {
	users := make([]*server.User, 0, len(names))
	for _, name := range names {
		u, err := s.User(name)
		if err != nil {
			return nil, err
		}
		users = append(users, u)
	}
	return users, nil
}

var errInstanceMetadata = errors.New("want ADDRESS=INSTANCE")

// serveInstances opens the extra metadata listeners and returns "INSTANCE URL" lines.
func serveInstances(s *server.Server, pairs []string) ([]string, error) {
	lines := make([]string, 0, len(pairs))
	for _, pair := range pairs {
		addr, instance, ok := strings.Cut(pair, "=")
		if !ok || instance == "" {
			return nil, fmt.Errorf("--instance-metadata %s: %w", pair, errInstanceMetadata)
		}
		url, err := s.ServeInstance(addr, instance)
		if err != nil {
			return nil, err
		}
		lines = append(lines, instance+"  "+url)
	}
	return lines, nil
}

// printHelp tells how to use the running simulator.
func printHelp(w io.Writer, s *server.Server, users []*server.User, metadata []string) error {
	o := s.Region().Options()
	var b strings.Builder
	fmt.Fprintf(&b, "ocisim: region %s (%s), tenancy %s\n\n", o.Region, o.Realm, o.Tenancy)
	b.WriteString("Point a program at it (put the hosts it must reach directly into NO_PROXY):\n\n")
	if err := printExports(&b, "  ", s.Env()); err != nil {
		return err
	}
	for _, u := range users {
		fmt.Fprintf(&b, "\nas user %s, unless ~/.oci/config exists:\n\n", u.Name)
		if err := printExports(&b, "  ", u.Env()); err != nil {
			return err
		}
	}
	b.WriteString("\nas an instance: nothing more; to choose another instance, put its name into the proxies: http://NAME@" +
		strings.TrimPrefix(s.ProxyURL(), "http://") + "\n")
	b.WriteString("where the metadata service is not asked through a proxy:\n\n")
	if err := printExports(&b, "  ", []string{"OCI_METADATA_BASE_URL=" + s.MetadataURL()}); err != nil {
		return err
	}
	b.WriteString("\n")
	row := func(name, value string) { fmt.Fprintf(&b, "%-20s%s\n", name, value) }
	row("CA", s.CAFile())
	for _, u := range users {
		row("key of "+u.Name, u.KeyFile)
	}
	row("endpoint", s.URL())
	for _, line := range metadata {
		row("metadata of", line)
	}
	if addr := s.ProxymuxAddr(); addr != "" {
		row("workload identity", addr)
	}
	row("admin API", s.AdminURL())
	row("web page", s.AdminURL()+"/")
	_, err := io.WriteString(w, b.String())
	if err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}
