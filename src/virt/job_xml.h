/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_JOB_XML_H
#define CCSNAP_JOB_XML_H

/* What is said to libvirt about a job on a disk, and what it says: the XML of a backup
 * (https://libvirt.org/formatbackup.html) and of a snapshot (formatsnapshot.html).
 */
struct backup_job;
struct backup_request;
struct err;
struct hardware;

/* The XML (malloc); ERR_REFUSED when a word in it cannot stand in XML at all. */
char *job_xml_backup(const struct backup_request *request, const struct hardware *hw,
		     struct err *err);
char *job_xml_overlay(const char *target, const char *path, const struct hardware *hw,
		      struct err *err);

/* Target, socket and scratch file of a backup's XML into *out, whose other members stay;
 * backup_job_free it.
 */
int job_xml_read_backup(const char *xml, struct backup_job *out, struct err *err);

#endif
