from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("shop", "0001_initial")]
    operations = [
        migrations.AddField("Note", "priority", models.IntegerField(null=True)),
        migrations.AddField("Reply", "channel", models.TextField(db_default="shop")),
    ]
