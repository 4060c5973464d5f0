from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("shop", "0003_index")]
    operations = [
        migrations.AddConstraint(
            "Note", models.CheckConstraint(condition=~Q(body=""), name="notes_have_a_body")),
    ]
