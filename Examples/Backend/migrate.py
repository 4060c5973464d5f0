#!/usr/bin/env python3
"""The shop's migrations with Django. They know nothing of Ferry, and run while the backend works.

  migrate.py --database URL TARGET   brings the tables to a migration, such as 0004, forward or back

Exit code 75: the database was not reached, or a lock was not free. Nothing was done; try again.
"""

import argparse
import os
import sys
from urllib.parse import urlsplit

import django
from django.conf import settings
from django.core.management import call_command
from django.db import InterfaceError, OperationalError


def configure(database):
    url = urlsplit(database)
    settings.configure(
        INSTALLED_APPS=["shop"],
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        DATABASES={"default": {
            "ENGINE": "django.db.backends.postgresql", "NAME": url.path.lstrip("/"),
            "HOST": url.hostname or "", "PORT": str(url.port or ""),
            "USER": url.username or "", "PASSWORD": url.password or "",
            "OPTIONS": {
                "application_name": "migrations", "connect_timeout": 5,
                # A program that holds a row must not stop all others behind the migration.
                "options": "-c lock_timeout=2s -c statement_timeout=20s",
            },
        }})
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    django.setup()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database", required=True, help="postgres://user@host:port/name")
    parser.add_argument("target", metavar="TARGET", help="the name of a migration, or its number")
    arguments = parser.parse_args()
    configure(arguments.database)
    try:
        # The backend has made the tables of the first migration.
        call_command("migrate", "shop", arguments.target, fake_initial=True, verbosity=1)
    except (OperationalError, InterfaceError) as error:
        print(f"migrate: {error}".rstrip(), file=sys.stderr)
        return 75
    return 0


if __name__ == "__main__":
    sys.exit(main())
