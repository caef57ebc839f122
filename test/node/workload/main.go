// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Command workload is what pods of test/node run. With the argument "pause" it is the first process of a pod's sandbox.
// Otherwise it serves its view of files and block devices over HTTP:
//
//	GET  /file?path=P             content
//	PUT  /file?path=P             write the body and see to it that the disk has it
//	GET  /size?path=P             bytes of the file system that has P, or of the block device P
//	GET  /block?path=P&at=N&n=N   bytes of a block device
//	PUT  /block?path=P&at=N       write the body to a block device
//	GET  /mode?path=P             "drwxrwsr-x 0:2000", the mode and the owner
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "pause" {
		pause()
		return
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	go func() { <-stop; os.Exit(0) }()
	for pattern, handle := range map[string]func(*http.Request) ([]byte, error){
		"GET /file": readFile, "PUT /file": writeFile, "GET /size": size, "GET /block": readBlock, "PUT /block": writeBlock, "GET /mode": mode,
	} {
		http.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			answer, err := handle(r)
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			_, _ = w.Write(answer)
		})
	}
	fmt.Println(http.ListenAndServe(":8080", nil))
	os.Exit(1)
}

// pause takes care of orphans until it is told to end.
func pause() {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGCHLD, syscall.SIGTERM, syscall.SIGINT)
	for s := range signals {
		if s != syscall.SIGCHLD {
			return
		}
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
	}
}

func readFile(r *http.Request) ([]byte, error) { return os.ReadFile(r.FormValue("path")) }

func writeFile(r *http.Request) ([]byte, error) {
	return nil, write(r, r.FormValue("path"), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0)
}

func write(r *http.Request, path string, flags int, at int64) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, flags, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteAt(body, at); err != nil {
		return err
	}
	return f.Sync()
}

func size(r *http.Request) ([]byte, error) {
	path := r.FormValue("path")
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode()&os.ModeDevice != 0 {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		n, err := f.Seek(0, io.SeekEnd)
		return strconv.AppendInt(nil, n, 10), err
	}
	var st syscall.Statfs_t
	if err := syscall.Statfs(path, &st); err != nil {
		return nil, err
	}
	return strconv.AppendInt(nil, int64(st.Blocks)*st.Bsize, 10), nil
}

func readBlock(r *http.Request) ([]byte, error) {
	at, err := strconv.ParseInt(r.FormValue("at"), 10, 64)
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(r.FormValue("n"))
	if err != nil {
		return nil, err
	}
	f, err := os.Open(r.FormValue("path"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data := make([]byte, n)
	_, err = f.ReadAt(data, at)
	return data, err
}

func writeBlock(r *http.Request) ([]byte, error) {
	at, err := strconv.ParseInt(r.FormValue("at"), 10, 64)
	if err != nil {
		return nil, err
	}
	return nil, write(r, r.FormValue("path"), os.O_WRONLY, at)
}

func mode(r *http.Request) ([]byte, error) {
	info, err := os.Stat(r.FormValue("path"))
	if err != nil {
		return nil, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil, fmt.Errorf("stat of %s: %w", r.FormValue("path"), syscall.ENOTSUP)
	}
	return fmt.Appendf(nil, "%s %d:%d", info.Mode(), st.Uid, st.Gid), nil
}
