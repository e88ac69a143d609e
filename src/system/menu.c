// SPDX-License-Identifier: Apache-2.0
#include "system/menu.h"

#include "system/grubscript.h"

/* Each command that a GRUB may lack, or that needs a serial port, is asked for with "if". */
void menu_begin(const struct menu_config *cfg, struct text *out)
{
	text_puts(out, "# Made by ccsnap: there was no grub.cfg.\n"
		       "set default=0\n"
		       "set timeout=1\n"
		       "if serial --unit=0 --speed=115200; then\n"
		       "\tterminal_input console serial\n"
		       "\tterminal_output console serial\n"
		       "fi\n");
	text_format(out, "search --no-floppy --fs-uuid --set=root %s\n", cfg->volume_uuid);
}

void menu_entry(const struct menu_config *cfg, const struct menu_kernel *kernel, struct text *out)
{
	text_puts(out, "menuentry ");
	grubscript_quote(kernel->title, out);
	text_puts(out, " --id ");
	grubscript_quote(kernel->title, out);
	text_format(out, " {\n\tsearch --no-floppy --fs-uuid --set=root %s\n\tlinux ",
		    kernel->volume_uuid);
	grubscript_quote(kernel->kernel, out);
	if (kernel->initrd)
		text_format(out, " root=UUID=%s", cfg->root_uuid);
	else
		text_format(out, " root=PARTUUID=%s", cfg->partuuid);
	text_format(out, " ro console=tty0 console=%s\n", cfg->serial_console);
	if (kernel->initrd) {
		text_puts(out, "\tinitrd ");
		grubscript_quote(kernel->initrd, out);
		text_puts(out, "\n");
	}
	text_puts(out, "}\n");
}
