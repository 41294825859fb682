#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
folder=$(mktemp -d)
touch "$folder/file"
rm -r "$folder"
