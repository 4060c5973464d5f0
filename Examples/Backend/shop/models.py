from django.db import models
from django.db.models import Q


class Customer(models.Model):
    id = models.TextField(primary_key=True)
    email = models.TextField(unique=True)
    name = models.TextField()
    approved = models.BooleanField(default=False)

    class Meta:
        db_table = "customers"
        indexes = [models.Index(fields=["name"], name="customers_by_name")]


class Note(models.Model):
    id = models.TextField(primary_key=True)
    order = models.TextField(db_column="order_id")
    body = models.TextField()

    class Meta:
        db_table = "notes"
        constraints = [
            models.CheckConstraint(condition=~Q(body=""), name="notes_have_a_body")]


class Reply(models.Model):
    id = models.TextField(primary_key=True)
    note = models.TextField()
    body = models.TextField()

    class Meta:
        db_table = "replies"


class Audit(models.Model):
    at = models.DateTimeField(auto_now_add=True)
    text = models.TextField()

    class Meta:
        db_table = "audits"
