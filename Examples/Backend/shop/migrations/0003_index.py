from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("shop", "0002_columns")]
    operations = [
        migrations.AddIndex("Customer", models.Index(fields=["name"], name="customers_by_name")),
    ]
