from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    operations = [
        migrations.CreateModel("Customer", [
            ("id", models.TextField(primary_key=True)), ("email", models.TextField(unique=True)),
            ("name", models.TextField()), ("approved", models.BooleanField(default=False)),
        ], {"db_table": "customers"}),
        migrations.CreateModel("Note", [
            ("id", models.TextField(primary_key=True)),
            ("order", models.TextField(db_column="order_id")), ("body", models.TextField()),
        ], {"db_table": "notes"}),
        migrations.CreateModel("Reply", [
            ("id", models.TextField(primary_key=True)), ("note", models.TextField()),
            ("body", models.TextField()),
        ], {"db_table": "replies"}),
    ]
