package recall

/*
#include <stdlib.h>
#include <stdio.h>
#include <dirent.h>
#include <regex.h>
#include "st.h"
typedef struct sqlite3 sqlite3; typedef struct sqlite3_stmt sqlite3_stmt;
int sqlite3_open(const char *name, sqlite3 **db); int sqlite3_close(sqlite3 *db);
int sqlite3_exec(sqlite3 *db, const char *sql, int (*cb)(void *, int, char **, char **), void *arg, char **errmsg);
void sqlite3_free(void *p);
int sqlite3_prepare_v2(sqlite3 *db, const char *sql, int n, sqlite3_stmt **stmt, const char **tail);
int sqlite3_step(sqlite3_stmt *s); int sqlite3_finalize(sqlite3_stmt *s);
int sqlite3_bind_blob(sqlite3_stmt *s, int i, const void *p, int n, void (*d)(void *));
typedef struct xmlDoc xmlDoc; typedef struct xmlNode xmlNode;
xmlDoc *xmlReadFile(const char *name, const char *enc, int options); void xmlFreeDoc(xmlDoc *d);
xmlNode *xmlDocGetRootElement(xmlDoc *d); char *xmlNodeGetContent(xmlNode *n); extern void (*xmlFree)(void *p);
static void xml_free(void *p) { xmlFree(p); }
typedef struct { void *next_in; } z_stream;
int deflateInit_(z_stream *s, int level, const char *version, int size); int deflate(z_stream *s, int flush); int deflateEnd(z_stream *s);
#define deflateInit(s, level) deflateInit_(s, level, "1", sizeof(z_stream))
static int deflate_init(z_stream *s, int level) { return deflateInit(s, level); }
typedef struct X509 X509; typedef struct EVP_PKEY EVP_PKEY; typedef struct BIO BIO;
BIO *BIO_new_mem_buf(const void *p, int n); int BIO_free(BIO *b);
X509 *PEM_read_bio_X509(BIO *b, X509 **x, int (*cb)(char *, int, int, void *), void *u); void X509_free(X509 *x);
EVP_PKEY *X509_get_pubkey(X509 *x); void EVP_PKEY_free(EVP_PKEY *k); int X509_verify(X509 *x, EVP_PKEY *k);
typedef struct GError { char *message; } GError; int g_load(const char *name, GError **err); void g_error_free(GError *e);
typedef struct AVFrame AVFrame; AVFrame *av_frame_alloc(void); void av_frame_free(AVFrame **f); int av_fill(AVFrame *f);
typedef struct PGresult PGresult; typedef struct PGconn PGconn; PGresult *PQexec(PGconn *c, const char *q); void PQclear(PGresult *r);
int PQntuples(PGresult *r); char *PQgetvalue(PGresult *r, int i, int j);
static PGresult *query(PGconn *c, const char *q) { PGresult *r = PQexec(c, q); return r; }
#include <netdb.h>
#include <string.h>
typedef struct RSA RSA; void RSA_free(RSA *r); int RSA_bits(RSA *r); int RSA_up_ref(RSA *r); int EVP_PKEY_assign(EVP_PKEY *k, int type, void *r);
static int assign_rsa(EVP_PKEY *k, RSA *r) { return EVP_PKEY_assign(k, 6, r); } RSA *RSA_new(void);
int st_add(st *s, char *text); static int st_insert(st *s, const char *text, char **err) {
	char *copy = strdup(text);
	if (st_add(s, copy))
		return 0;
	*err = strdup("full");
	return -1;
}
// The result goes back by st_text_release.
char *st_eval(st *s, const char *text);
void st_text_release(char *p);
static char *st_text_new(int n) { return malloc(n); }
static void st_text_free(char *p) { free(p); }
typedef struct rocksdb_t rocksdb_t; void rocksdb_delete(rocksdb_t *db, void *options, const char *key, size_t n, char **err); void rocksdb_free(void *p);
void st_set_userdata(st *s, int kind, void *p);
typedef struct st_txn st_txn; st_txn *st_txn_begin(st *s); int st_txn_run(st_txn *t); int st_txn_commit(st_txn *t); void st_txn_abort(st_txn *t);
*/
import "C"

import (
	"errors"
	"runtime"
	"runtime/cgo"
	"unsafe"
)

// What has to be released is said by the documentation of a library alone.

func badExec(db *C.sqlite3, q *C.char, short bool) error {
	var msg *C.char
	if rc := C.sqlite3_exec(db, q, nil, nil, &msg); rc != 0 {
		if short {
			return errors.New("exec")
		}
		defer C.sqlite3_free(unsafe.Pointer(msg))
		return errors.New(C.GoString(msg))
	}
	return nil
}
func badExecNever(db *C.sqlite3, q *C.char) string {
	var msg *C.char
	C.sqlite3_exec(db, q, nil, nil, &msg)
	return C.GoString(msg)
}
func badExecFree(db *C.sqlite3, q *C.char) {
	var msg *C.char
	C.sqlite3_exec(db, q, nil, nil, &msg)
	C.free(unsafe.Pointer(msg))
}
func goodExec(db *C.sqlite3, q *C.char) error {
	var msg *C.char
	if rc := C.sqlite3_exec(db, q, nil, nil, &msg); rc != 0 {
		defer C.sqlite3_free(unsafe.Pointer(msg))
		return errors.New(C.GoString(msg))
	}
	return nil
}

func badContent(n *C.xmlNode) string    { return C.GoString(C.xmlNodeGetContent(n)) }
func badContentVar(n *C.xmlNode) string { c := C.xmlNodeGetContent(n); return C.GoString(c) }
func goodContent(n *C.xmlNode) string {
	c := C.xmlNodeGetContent(n)
	defer C.xml_free(unsafe.Pointer(c))
	return C.GoString(c)
}
func badDocument(name *C.char) error {
	d := C.xmlReadFile(name, nil, 0)
	if C.xmlDocGetRootElement(d) == nil {
		return errors.New("empty")
	}
	C.xmlFreeDoc(d)
	return nil
}
func goodDocument(name *C.char) *C.xmlNode {
	d := C.xmlReadFile(name, nil, 0)
	return C.xmlDocGetRootElement(d)
}

func badDeflate(b []byte) error {
	var z C.z_stream
	if C.deflate_init(&z, 6) != 0 {
		return errors.New("init")
	}
	if C.deflate(&z, 4) < 0 {
		return errors.New("deflate")
	}
	C.deflateEnd(&z)
	return nil
}
func badDeflateNever() {
	z := (*C.z_stream)(C.calloc(1, C.sizeof_z_stream))
	defer C.free(unsafe.Pointer(z))
	C.deflateInit_(z, 6, nil, 8)
}
func goodDeflate(b []byte) error {
	var z C.z_stream
	if C.deflate_init(&z, 6) != 0 {
		return errors.New("init")
	}
	defer C.deflateEnd(&z)
	if C.deflate(&z, 4) < 0 {
		return errors.New("deflate")
	}
	return nil
}

func badCert(x *C.X509) bool { return C.X509_verify(x, C.X509_get_pubkey(x)) == 1 }
func cert(pem []byte) (*C.X509, error) {
	b := C.BIO_new_mem_buf(unsafe.Pointer(&pem[0]), C.int(len(pem)))
	defer C.BIO_free(b)
	if x := C.PEM_read_bio_X509(b, nil, nil, nil); x != nil {
		return x, nil
	}
	return nil, errors.New("pem")
}
func badCertOf(pem []byte, k *C.EVP_PKEY) bool {
	x, err := cert(pem)
	return err == nil && C.X509_verify(x, k) == 1
}
func goodCertOf(pem []byte, k *C.EVP_PKEY) bool {
	x, err := cert(pem)
	if err != nil {
		return false
	}
	defer C.X509_free(x)
	return C.X509_verify(x, k) == 1
}
func badGError(name *C.char) error {
	var err *C.GError
	if C.g_load(name, &err) == 0 {
		return errors.New(C.GoString(err.message))
	}
	return nil
}
func goodGError(name *C.char) error {
	var err *C.GError
	if C.g_load(name, &err) == 0 {
		defer C.g_error_free(err)
		return errors.New(C.GoString(err.message))
	}
	return nil
}
func badFrameFree() error {
	f := C.av_frame_alloc()
	if C.av_fill(f) < 0 {
		return errors.New("fill")
	}
	C.av_frame_free(&f)
	return nil
}
func goodFrameFree()                       { f := C.av_frame_alloc(); C.av_fill(f); C.av_frame_free(&f) }
func badRows(c *C.PGconn, q *C.char) C.int { r := C.query(c, q); return C.PQntuples(r) }
func badRowsNone(c *C.PGconn, q *C.char)   { C.PQexec(c, q) }
func badRowsFree(c *C.PGconn, q *C.char)   { r := C.PQexec(c, q); C.free(unsafe.Pointer(r)) }
func badValue(c *C.PGconn, q *C.char) string {
	r := C.PQexec(c, q)
	v := C.PQgetvalue(r, 0, 0)
	C.PQclear(r)
	return C.GoString(v)
}
func goodRows(c *C.PGconn, q *C.char) C.int {
	r := C.query(c, q)
	defer C.PQclear(r)
	return C.PQntuples(r)
}
func badDir(name *C.char) bool { d := C.opendir(name); return C.readdir(d) != nil }
func goodDir(name *C.char)     { d := C.opendir(name); C.readdir(d); C.closedir(d) }
func badAnother(p, q *C.char)  { d := C.opendir(p); C.readdir(d); d = C.opendir(q); C.closedir(d) }
func goodAnother(p, q *C.char) { d := C.opendir(p); C.closedir(d); d = C.opendir(q); C.closedir(d) }
func badErrText(s *C.st, text *C.char) error {
	var err *C.char
	if C.st_insert(s, text, &err) != 0 {
		return errors.New(C.GoString(err))
	}
	return nil
}
func goodErrText(s *C.st, text *C.char) error {
	var err *C.char
	if C.st_insert(s, text, &err) != 0 {
		defer C.free(unsafe.Pointer(err))
		return errors.New(C.GoString(err))
	}
	return nil
}
func badRefused(s *C.st, text string) bool {
	p := C.CString(text)
	if C.st_insert(s, p, nil) != 0 {
		C.free(unsafe.Pointer(p))
		return false
	}
	return true
}
func goodRefused(s *C.st, text string) bool {
	p := C.CString(text)
	ok := C.st_insert(s, p, nil) == 0
	C.free(unsafe.Pointer(p))
	return ok
}
func badRelease(s *C.st, text *C.char)  { p := C.st_eval(s, text); C.free(unsafe.Pointer(p)) }
func goodRelease(s *C.st, text *C.char) { p := C.st_eval(s, text); C.st_text_release(p) }
func badOpen(path *C.char) (*C.sqlite3, error) {
	var db *C.sqlite3
	if C.sqlite3_open(path, &db) != 0 {
		return nil, errors.New("open")
	}
	return db, nil
}
func goodOpen(path *C.char) (*C.sqlite3, error) {
	var db *C.sqlite3
	if C.sqlite3_open(path, &db) != 0 {
		C.sqlite3_close(db)
		return nil, errors.New("open")
	}
	return db, nil
}
func badName(host *C.char) (string, error) {
	var list *C.struct_addrinfo
	if C.getaddrinfo(host, nil, nil, &list) != 0 {
		return "", errors.New("host")
	}
	for a := list; a != nil; a = a.ai_next {
		if a.ai_canonname != nil {
			name := C.GoString(a.ai_canonname)
			C.freeaddrinfo(list)
			return name, nil
		}
	}
	return "", errors.New("no name")
}
func goodName(host *C.char) (string, error) {
	var list *C.struct_addrinfo
	if C.getaddrinfo(host, nil, nil, &list) != 0 {
		return "", errors.New("host")
	}
	defer C.freeaddrinfo(list)
	for a := list; a != nil; a = a.ai_next {
		if a.ai_canonname != nil {
			return C.GoString(a.ai_canonname), nil
		}
	}
	return "", errors.New("no name")
}
func badAssign(k *C.EVP_PKEY) bool {
	r := C.RSA_new()
	defer C.RSA_free(r)
	return C.RSA_bits(r) > 0 && C.assign_rsa(k, r) == 1
}
func goodAssignRef(k *C.EVP_PKEY) bool {
	r := C.RSA_new()
	defer C.RSA_free(r)
	C.RSA_up_ref(r)
	return C.assign_rsa(k, r) == 1
}
func goodAssignFirst(k *C.EVP_PKEY) bool {
	r := C.RSA_new()
	if C.assign_rsa(k, r) == 1 {
		return true
	}
	C.RSA_free(r)
	return false
}
func goodAssign(k *C.EVP_PKEY) bool {
	r := C.RSA_new()
	if C.RSA_bits(r) == 0 || C.assign_rsa(k, r) != 1 {
		C.RSA_free(r)
		return false
	}
	return true
}

type encoder struct{ p *C.char }

func (e *encoder) shut() { C.st_text_free(e.p) }

func badShut(s *C.st, n int) {
	e := &encoder{C.st_text_new(8)}
	defer e.shut()
	for range n {
		if C.st_insert(s, e.p, nil) != 0 {
			e.shut()
			return
		}
	}
}
func goodShut(s *C.st, n int) {
	e := &encoder{C.st_text_new(8)}
	defer e.shut()
	for range n {
		if C.st_insert(s, e.p, nil) != 0 {
			return
		}
	}
}
func badDelete(db *C.rocksdb_t, key *C.char) error {
	var err *C.char
	if C.rocksdb_delete(db, nil, key, 1, &err); err != nil {
		return errors.New(C.GoString(err))
	}
	return nil
}
func goodDelete(db *C.rocksdb_t, key *C.char) error {
	var err *C.char
	if C.rocksdb_delete(db, nil, key, 1, &err); err != nil {
		defer C.rocksdb_free(unsafe.Pointer(err))
		return errors.New(C.GoString(err))
	}
	return nil
}
func badPath(p *C.char) string       { r := C.realpath(p, nil); return C.GoString(r) }
func goodPath(p, buf *C.char) string { return C.GoString(C.realpath(p, buf)) }
func goodPathFreed(p *C.char)        { r := C.realpath(p, nil); C.free(unsafe.Pointer(r)) }
func badPipe(cmd, mode *C.char)      { f := C.popen(cmd, mode); C.fclose(f) }
func goodPipe(cmd, mode *C.char)     { f := C.popen(cmd, mode); C.pclose(f) }
func badRegex(pattern *C.char) C.int { var re C.regex_t; return C.regcomp(&re, pattern, 0) }
func goodRegex(pattern *C.char)      { var re C.regex_t; C.regcomp(&re, pattern, 0); C.regfree(&re) }

// Children go first, and defers run from the last to the first.

func badDefers(path, q *C.char) {
	var db *C.sqlite3
	var st *C.sqlite3_stmt
	if C.sqlite3_open(path, &db) != 0 {
		C.sqlite3_close(db)
		return
	}
	C.sqlite3_prepare_v2(db, q, -1, &st, nil)
	C.sqlite3_step(st)
	defer C.sqlite3_finalize(st)
	defer C.sqlite3_close(db)
}
func goodDefers(path, q *C.char) {
	var db *C.sqlite3
	var st *C.sqlite3_stmt
	if C.sqlite3_open(path, &db) != 0 {
		C.sqlite3_close(db)
		return
	}
	defer C.sqlite3_close(db)
	C.sqlite3_prepare_v2(db, q, -1, &st, nil)
	defer C.sqlite3_finalize(st)
	C.sqlite3_step(st)
}
func badIter(path *C.char) {
	db := C.st_open(path)
	it := C.st_iter_new(db)
	C.st_close(db)
	C.st_iter_free(it)
}
func goodIter(path *C.char) {
	db := C.st_open(path)
	it := C.st_iter_new(db)
	C.st_iter_free(it)
	C.st_close(db)
}
func badLiteral(path *C.char) {
	db := C.st_open(path)
	defer func() { C.st_get(db, path) }()
	defer C.st_close(db)
}
func badUseInDefer(s string) {
	p := unsafe.Pointer(C.CString(s))
	defer C.st_put(nil, p, 1)
	defer C.free(p)
}
func goodUseInDefer(s string) {
	p := unsafe.Pointer(C.CString(s))
	defer C.free(p)
	defer C.st_put(nil, p, 1)
}

type reader struct {
	db *C.st
	it *C.st_iter
}

func newReader(path *C.char) *reader {
	r := &reader{db: C.st_open(path)}
	r.it = C.st_iter_new(r.db)
	return r
}
func (r *reader) badEnd()  { C.st_close(r.db); C.st_iter_free(r.it) }
func (r *reader) goodEnd() { C.st_iter_free(r.it); C.st_close(r.db) }

func badTxn(s *store) error {
	t := C.st_txn_begin(s.ptr)
	if C.st_txn_run(t) != 0 {
		return errors.New("run")
	}
	C.st_txn_commit(t)
	return nil
}
func goodTxn(s *store) error {
	t := C.st_txn_begin(s.ptr)
	if C.st_txn_run(t) != 0 {
		C.st_txn_abort(t)
		return errors.New("run")
	}
	C.st_txn_commit(t)
	return nil
}

// Finalizers.

type final struct {
	n int
	p *C.st
}

func end(f *final) { C.st_close(f.p) }

func newFinal() *final       { f := &final{}; runtime.SetFinalizer(f, end); return f }
func badSetAgain() *final    { f := newFinal(); runtime.SetFinalizer(f, end); return f }
func badFinalPart(f *final)  { runtime.SetFinalizer(&f.p, func(p **C.st) { C.st_close(*p) }) }
func goodFinalPart(f *final) { runtime.SetFinalizer(&f.n, func(*int) { println("gone") }) }
func badFinalOfC(path *C.char) {
	p := C.st_open(path)
	runtime.SetFinalizer(p, func(p *C.st) { C.st_close(p) })
}
func badNamed(p *C.st) (f final)   { f.p = p; runtime.SetFinalizer(&f, end); return }
func goodNamed(p *C.st) (f *final) { f = &final{p: p}; runtime.SetFinalizer(f, end); return }

type ended struct{ p *C.st }

func newEnded(path *C.char) *ended {
	f := &ended{p: C.st_open(path)}
	runtime.SetFinalizer(f, (*ended).badEnd)
	return f
}
func (f *ended) badEnd() C.int { n := C.st_get(f.p, nil); C.st_close(f.p); return n }
func (f *ended) last()         { f.badEnd() }

// What C keeps.

func badBlob(st *C.sqlite3_stmt, b []byte) {
	data := append([]byte(nil), b...)
	C.sqlite3_bind_blob(st, 1, unsafe.Pointer(&data[0]), C.int(len(data)), nil)
}
func goodBlobPinned(st *C.sqlite3_stmt, b []byte, pin *runtime.Pinner) {
	pin.Pin(&b[0])
	C.sqlite3_bind_blob(st, 1, unsafe.Pointer(&b[0]), C.int(len(b)), nil)
}
func badUserdata(s *store)  { n := 1; C.st_set_userdata(s.ptr, 1, unsafe.Pointer(&n)) }
func (r *reader) badSelf()  { C.st_set_userdata(r.db, 1, unsafe.Pointer(r)) }
func (r *reader) goodSelf() { C.st_set_userdata(r.db, 1, unsafe.Pointer(r.it)) }
func goodSetvbuf(f *C.FILE) { C.setvbuf(f, nil, 2, 0) }
func badSetvbuf(f *C.FILE)  { b := make([]C.char, 512); C.setvbuf(f, &b[0], 0, 512) }

// A handle that nothing else has, and a block that has moved.

func (e *Engine) badHandleFirst(f func()) error {
	h := cgo.NewHandle(f)
	if f == nil {
		return errors.New("no function")
	}
	e.hs = append(e.hs, h)
	return nil
}
func (e *Engine) goodHandleFirst(f func()) error {
	if f == nil {
		return errors.New("no function")
	}
	h := cgo.NewHandle(f)
	e.hs = append(e.hs, h)
	return nil
}
func badMovedTo(n C.size_t) *C.char {
	p := (*C.char)(C.malloc(8))
	q := (*C.char)(C.realloc(unsafe.Pointer(p), n))
	*p = 1
	return q
}
func goodMovedTo(n C.size_t) *C.char {
	p := (*C.char)(C.malloc(8))
	q := (*C.char)(C.realloc(unsafe.Pointer(p), n))
	if q == nil {
		*p = 1
		return p
	}
	return q
}
