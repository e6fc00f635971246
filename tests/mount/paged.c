/*
 * paged - a machine that is short of memory: before a request is read, it takes away all memory
 * that the request would come into, unless that is locked.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum { REQUEST_PAGES = 32 }; /* no other read is as large */

ssize_t read(int descriptor, void *bytes, size_t size)
{
	static ssize_t (*next)(int, void *, size_t);
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = ((uintptr_t)bytes + page - 1) & -page;
	uintptr_t until = ((uintptr_t)bytes + size) & -page;

	if (!next)
		next = (ssize_t(*)(int, void *, size_t))dlsym(RTLD_NEXT, "read");
	if (size >= REQUEST_PAGES * page)
		madvise((void *)from, until - from, MADV_DONTNEED);
	return next(descriptor, bytes, size);
}
