#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
file="a b"
cat $file
