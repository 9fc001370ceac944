"""The kernel lab: a kernel is defined once; checking, timing, tuning, comparing and plotting come from its record."""
