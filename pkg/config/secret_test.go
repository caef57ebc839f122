// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"go.yaml.in/yaml/v3"
	"k8s.io/klog/v2"
	sigsyaml "sigs.k8s.io/yaml"
)

const marker = "MARKED"

// TestSecretsStaySecret prints a secret, alone and within a configuration, in every way that a log might.
func TestSecretsStaySecret(t *testing.T) {
	c := &Config{Auth: Auth{Key: marker, Passphrase: marker}}
	c.Environment, _ = FromEnviron(func(name string) (string, bool) {
		return marker, name == "OCI_WORKLOAD_IDENTITY_CLIENT_SECRET"
	})
	values := map[string]any{
		"secret": Secret(marker), "pointer": new(Secret(marker)), "auth": c.Auth, "config": c, "environment": c.Environment,
		"map": map[string]Secret{"a": marker}, "slice": []Secret{marker}, "error": fmt.Errorf("wrapped: %v", Secret(marker)),
	}
	for name, v := range values {
		// Not %p: fmt asks no method for it, and go vet refuses it for anything but pointers.
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%+q", "%#q", "%x", "%X", "% x", "%d", "%T", "%t", "%c", "%U", "%e", "%b", "%10.3s", "%-20v", "%!"} {
			check(t, name+" "+verb, fmt.Sprintf(verb, v))
		}
		check(t, name+" Sprint", fmt.Sprint(v))
		check(t, name+" Sprintln", fmt.Sprintln(v, v))
		if name != "error" {
			check(t, name+" json", string(must(json.Marshal(v))))
			check(t, name+" yaml", string(must(yaml.Marshal(v))))
			check(t, name+" sigs yaml", string(must(sigsyaml.Marshal(v))))
		}
		var out bytes.Buffer
		slog.New(slog.NewJSONHandler(&out, nil)).Info("m", "v", v)
		slog.New(slog.NewTextHandler(&out, nil)).Info("m", "v", v)
		check(t, name+" slog", out.String())
		check(t, name+" klog", throughKlog(t, v))
		funcr.NewJSON(func(line string) { out.WriteString(line) }, funcr.Options{}).Info("m", "v", v)
		check(t, name+" funcr", out.String())
	}
	var out bytes.Buffer
	if err := Describe(&out, c); err != nil {
		t.Fatal(err)
	}
	check(t, "Describe", out.String())
	for _, want := range []string{"key: '[redacted]'", "passphrase: '[redacted]'", `OCI_WORKLOAD_IDENTITY_CLIENT_SECRET="[redacted]"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("Describe lacks %s:\n%s", want, out.String())
		}
	}
}

func throughKlog(t *testing.T, v any) string {
	t.Helper()
	var out bytes.Buffer
	flags := flag.NewFlagSet("", flag.PanicOnError)
	klog.InitFlags(flags)
	for name, value := range map[string]string{"logtostderr": "false", "alsologtostderr": "false", "stderrthreshold": "FATAL", "v": "10"} {
		if err := flags.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	state := klog.CaptureState()
	defer state.Restore()
	klog.SetOutput(&out)
	klog.InfoS("m", "v", v)
	klog.Infof("%v %+v", v, v)
	klog.FromContext(context.Background()).V(10).Info("m", "v", v)
	klog.Flush()
	klog.SetOutput(nil)
	if !strings.Contains(out.String(), "m") {
		t.Fatal("klog wrote nothing")
	}
	return out.String()
}

func check(t *testing.T, how, text string) {
	t.Helper()
	if strings.Contains(text, marker) || strings.Contains(strings.ToUpper(text), fmt.Sprintf("%X", marker)) {
		t.Errorf("%s: leaks: %s", how, text)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestSecretPrintsAsRedacted(t *testing.T) {
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		if got := fmt.Sprintf(verb, Secret("x")); got != "[redacted]" {
			t.Errorf("%s prints %q", verb, got)
		}
	}
	if got := fmt.Sprintf("<%v>", Secret("")); got != "<>" {
		t.Errorf("an unset secret prints as %q", got)
	}
	if string(Secret("x")) != "x" {
		t.Error("the value is lost")
	}
	var a Auth
	if err := json.Unmarshal([]byte(`{"Key":"k"}`), &a); err != nil || string(a.Key) != "k" {
		t.Errorf("decoding gives %q, %v", string(a.Key), err)
	}
}
