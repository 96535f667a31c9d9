"""Views: where, when and with which images something was seen."""
