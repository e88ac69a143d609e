/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_FORWARD_H
#define CCSNAP_FORWARD_H

/* A socket of this host that leads to one on the host of a qemu+ssh URI, by a second ssh of
 * ours, which asks nobody anything: a key, or an agent of keys, has to let it in.
 *
 * Of the URI (https://libvirt.org/uri.html) it honours what libvirt does with this
 * transport: user, host, port, command, keyfile, no_verify.
 */
struct err;
struct forward;

/* Could it be done?  ERR_REFUSED; nothing is started. */
int forward_check(const char *uri, const char *remote_socket, struct err *err);

/* Returns when who listens there has begun to speak, as an NBD server does; within
 * half a minute.
 */
struct forward *forward_start(const char *uri, const char *remote_socket, struct err *err);
const char *forward_socket(const struct forward *f);
void forward_stop(struct forward *f); /* NULL is fine */

#endif
