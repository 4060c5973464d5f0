from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("shop", "0004_condition")]
    operations = [
        migrations.CreateModel("Audit", [
            ("id", models.BigAutoField(primary_key=True)),
            ("at", models.DateTimeField(auto_now_add=True)), ("text", models.TextField()),
        ], {"db_table": "audits"}),
    ]
