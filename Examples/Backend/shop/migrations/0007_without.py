from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("shop", "0006_moderated")]
    operations = [
        migrations.RemoveField("Reply", "moderated"),
        migrations.RemoveField("Reply", "channel"),
        migrations.RemoveField("Note", "priority"),
    ]
