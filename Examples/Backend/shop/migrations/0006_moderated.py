from django.db import migrations, models


class Migration(migrations.Migration):
    """PostgreSQL has no default for the column: it refuses replies of programs that lack it."""

    dependencies = [("shop", "0005_audits")]
    operations = [
        migrations.AddField("Reply", "moderated", models.BooleanField(default=False)),
    ]
