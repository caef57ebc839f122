// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"os"
	"path/filepath"
)

// ReadFile reads the configuration at path and the files that it names (auth.keyFile, caFile). With strict, mistakes
// that would only be warnings are errors. The Config is of use only if the report has no errors.
func ReadFile(path string, strict bool) (*Config, Report) {
	data, err := os.ReadFile(path)
	if err != nil {
		return &Config{file: path}, Report{Problems: []Problem{{Severity: Error, File: path, Message: fmt.Sprintf("cannot read the cloud config: %v", err), Err: err}}}
	}
	c, report := Parse(path, data)
	report = report.Merge(c.readFiles())
	report.sort()
	if strict {
		report = report.Strict()
	}
	return c, report
}

// readFiles loads the files that the configuration names.
func (c *Config) readFiles() Report {
	var report Report
	if name := c.Auth.KeyFile; name != "" && c.Auth.Key == "" && c.Principal() == UserPrincipal {
		path := c.besides(name)
		if data, ok := c.readInto(&report, "auth.keyFile", path); ok {
			c.Auth.Key = Secret(data)
			c.setOrigin("auth.key", Origin{source: fromKeyFile, file: path})
			if message, _ := keyFault(c.Auth.Key, c.Auth.Passphrase); message != "" {
				c.fileProblem(&report, "auth.keyFile", fmt.Sprintf("%s: %s", path, message), nil)
			}
		}
	}
	if name := c.CAFile; name != "" && c.CABundle == "" {
		path := c.besides(name)
		if data, ok := c.readInto(&report, "caFile", path); ok {
			c.CABundle = data
			c.setOrigin("caBundle", Origin{source: fromKeyFile, file: path})
			if _, message := parseBundle(data); message != "" {
				c.fileProblem(&report, "caFile", fmt.Sprintf("%s: %s", path, message), nil)
			}
		}
	}
	return report
}

// besides resolves a path of the configuration against the directory of the config file.
func (c *Config) besides(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(c.file), path)
}

func (c *Config) readInto(report *Report, key, path string) (string, bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		c.fileProblem(report, key, fmt.Sprintf("cannot be read: %v", err), err)
		return "", false
	}
	return string(data), true
}

// fileProblem reports something about a file that the configuration names.
func (c *Config) fileProblem(report *Report, key, message string, err error) {
	report.Problems = append(report.Problems, Problem{Severity: Error, File: c.file, Line: c.Origin(key).line, Key: key, Message: message, Err: err})
}
